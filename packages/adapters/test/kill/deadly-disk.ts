import { type DiskFile, nodeDisk } from "holdfast/disk";

/** The disk of a program that dies right after the nth write to a journal, of those that count; 0: it lives. */
export function deadlyDisk(killAfter: number, counts: (lines: string[]) => boolean = () => true): typeof nodeDisk {
  let left = killAfter;
  const deadly = (file: DiskFile): DiskFile =>
    new Proxy(file, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          const result: unknown = Reflect.apply(member, target, args);
          if (name !== "write") return result;
          const lines = Buffer.from(args[0] as Uint8Array)
            .toString("utf8")
            .split("\n")
            .filter(Boolean);
          if (counts(lines) && --left === 0) process.kill(process.pid, "SIGKILL");
          return result;
        };
      },
    });
  return {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      return /sessions.*\.jsonl/.test(path) ? deadly(file) : file;
    },
  };
}
