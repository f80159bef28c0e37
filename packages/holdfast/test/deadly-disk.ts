import { type DiskFile, nodeDisk } from "holdfast/disk";

interface Death {
  /** SIGKILL at the nth write to a journal, of those that count; 0: never. */
  readonly killAfter: number;
  /** Which writes count: those of streamed words, whose number depends on the weather, or all others. Default: all. */
  readonly counts?: "drafts" | "records";
  /** How much of that write reaches the file. Default: all of it. */
  readonly written?: "all" | "half";
}

function kindOf(bytes: Uint8Array): "drafts" | "records" {
  const lines = Buffer.from(bytes).toString("utf8").split("\n").filter(Boolean);
  return lines.every((line) => line.includes('"kind":"draft"')) ? "drafts" : "records";
}

/** The disk of a program that kills itself with a write to a journal. */
export function deadlyDisk({ killAfter, counts, written = "all" }: Death): typeof nodeDisk {
  let left = killAfter;
  const write = (file: DiskFile, bytes: Uint8Array): number => {
    if ((counts !== undefined && counts !== kindOf(bytes)) || --left !== 0) return file.write(bytes);
    file.write(written === "all" ? bytes : bytes.subarray(0, Math.ceil(bytes.length / 2)));
    process.kill(process.pid, "SIGKILL");
    return bytes.length;
  };
  const deadly = (file: DiskFile): DiskFile =>
    new Proxy(file, {
      get(target, name) {
        if (name === "write") return (bytes: Uint8Array) => write(target, bytes);
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
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
