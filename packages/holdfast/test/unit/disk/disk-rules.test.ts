import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs, {
  chownSync,
  closeSync,
  constants,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SimulatedDisk } from "@holdfast/testkit/simulation";
import { HoldfastError, newId } from "holdfast";
import { type Disk, type DiskStat, nodeDisk, type OpenMode } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { afterEach, describe, expect, test, vi } from "vitest";
import { hasSchema, makeDatabaseFile, removeDatabase } from "../../../src/disk/database-file.ts";
import { diskFailure, isForbidden, isFull, isGeneral } from "../../../src/disk/failure.ts";
import { assertStoreFile } from "../../../src/disk/file-rules.ts";
import { FUSE, isNetworkMount, mountKind, mountPoints, NETWORK_KINDS } from "../../../src/disk/network-kinds.ts";
import { needs } from "../../machine/allowed.ts";
import { place } from "../../place.ts";

const originals = { lstatSync: fs.lstatSync, openSync: fs.openSync };
const noPosix = process.platform === "win32" ? "needs POSIX file types" : null;
const modes: readonly OpenMode[] = ["read", "append", "update"];

function refusalOf(work: () => unknown): HoldfastError {
  try {
    work();
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(fs, originals);
  syncBuiltinESMExports();
});

describe("what is no file of a store is not opened", () => {
  const things: [what: string, put: (path: string, elsewhere: string) => unknown][] = [
    ["a folder", (path) => mkdirSync(path)],
    ["a symbolic link", (path, elsewhere) => symlinkSync(elsewhere, path)],
    ["a symbolic link", (path) => symlinkSync("/nowhere", path)],
    ["a named pipe", (path) => void execFileSync("mkfifo", [path])],
    ["a socket", (path) => once(createServer().unref().listen(path), "listening")],
  ];
  test.each(things)("%s", async (what, put) => {
    using here = place();
    const elsewhere = join(here.path, "elsewhere");
    writeFileSync(elsewhere, "content");
    const path = join(here.path, "file");
    await put(path, elsewhere);
    // Somebody has it open: whoever opens a pipe now would get it, and not wait for ever.
    const held = what === "a named pipe" ? openSync(path, constants.O_RDWR | constants.O_NONBLOCK) : null;
    for (const mode of modes) {
      const { code, message, facts } = refusalOf(() => nodeDisk.open(path, mode));
      expect({ code, message, facts }).toMatchObject({
        code: "PATH_UNSAFE",
        message: expect.stringContaining(`${path} is ${what}, but a file belongs there.`),
        facts: { path },
      });
    }
    if (held !== null) closeSync(held);
    expect(readFileSync(elsewhere, "utf8")).toBe("content");
  });

  test("a device is not even opened: opening one can set something off", (context) => {
    needs(context, "a device", process.getuid?.() === 0 ? noPosix : "needs root to make one");
    using here = place();
    const path = join(here.path, "file");
    execFileSync("mknod", [path, "c", "1", "5"]);
    const opened = watchCalls("openSync");
    expect(refusalOf(() => nodeDisk.open(path, "read"))).toMatchObject({
      code: "PATH_UNSAFE",
      facts: { kind: "device" },
    });
    expect(opened()).toEqual([]);
  });

  test("also if it takes the place of a file between the look and the opening; and no descriptor stays open", (context) => {
    needs(context, "a named pipe", noPosix);
    using here = place();
    const [file, pipe, link] = [join(here.path, "file"), join(here.path, "pipe"), join(here.path, "link")];
    writeFileSync(file, "");
    symlinkSync(file, link);
    execFileSync("mkfifo", [pipe]);
    const before = openDescriptors();
    const { lstatSync } = fs;
    // As if it had been a file when it was looked at.
    patch("lstatSync", (_path: string, options: object) => lstatSync(file, options as { throwIfNoEntry: false }));
    for (const mode of modes) {
      expect(refusalOf(() => nodeDisk.open(pipe, mode)).facts).toEqual({ path: pipe, kind: "fifo" });
      expect(() => nodeDisk.open(link, mode)).toThrow(expect.objectContaining({ code: "ELOOP" }));
    }
    expect(openDescriptors()).toBe(before);
  });

  test("what is not there is ENOENT, and what is there is not created again", () => {
    using here = place();
    const path = join(here.path, "file");
    for (const mode of modes)
      expect(() => nodeDisk.open(path, mode)).toThrow(expect.objectContaining({ code: "ENOENT" }));
    nodeDisk.open(path, "create").close();
    expect(() => nodeDisk.open(path, "create")).toThrow(expect.objectContaining({ code: "EEXIST" }));
    for (const mode of modes) nodeDisk.open(path, mode).close();
  });

  test("a file that a server has a lease on is waited for", async (context) => {
    needs(context, "a file lease", process.platform === "linux" ? whyNoPython() : "needs Linux");
    using here = place();
    const path = join(here.path, "file");
    writeFileSync(path, "content");
    // Takes a lease, and gives it back when the kernel asks for it.
    const holder = spawn("python3", [
      "-c",
      `import fcntl,os,signal,sys,time
fd=os.open(sys.argv[1],os.O_RDWR)
signal.signal(signal.SIGIO,lambda *_:(fcntl.fcntl(fd,fcntl.F_SETLEASE,fcntl.F_UNLCK),os._exit(0)))
fcntl.fcntl(fd,fcntl.F_SETLEASE,fcntl.F_WRLCK)
print("leased",flush=True)
time.sleep(60)`,
      path,
    ]);
    await once(holder.stdout, "data");
    const file = nodeDisk.open(path, "read");
    const bytes = Buffer.alloc(7);
    expect(file.read(bytes, 0, 7, 0)).toBe(7);
    file.close();
    holder.kill("SIGKILL");
  });
});

describe("a file that SQLite is to open", () => {
  const made = (path: string): string => nodeDisk.stat(path)?.kind ?? "nothing";

  test("is made, for this user alone, and what is beside it goes: it has no such files", () => {
    using here = place();
    const path = join(here.path, "some.sqlite");
    const sides = ["-wal", "-shm", "-journal"];
    const leave = (): void => {
      for (const ending of sides) writeFileSync(path + ending, "of another one");
    };
    const left = (): string[] => sides.map((ending) => made(path + ending));
    leave();
    const { ino } = makeDatabaseFile(nodeDisk, path);
    expect(statSync(path)).toMatchObject({ ino, size: 0 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(left()).toEqual(Array(3).fill("nothing"));
    leave();
    expect(makeDatabaseFile(nodeDisk, path).ino).toBe(ino);
    expect(left()).toEqual(Array(3).fill("nothing"));
    leave();
    removeDatabase(nodeDisk, path);
    expect([made(path), ...left()]).toEqual(Array(4).fill("nothing"));
  });

  test.each(["", "-wal", "-shm", "-journal"])(
    "is refused if anything else has its name, or one beside it: %j",
    (ending) => {
      using here = place();
      const path = join(here.path, "some.sqlite");
      if (ending !== "") writeFileSync(path, "");
      for (const put of [
        () => symlinkSync("/nowhere", path + ending),
        () => execFileSync("mkfifo", [path + ending]),
        () => mkdirSync(path + ending),
      ]) {
        put();
        expect(refusalOf(() => makeDatabaseFile(nodeDisk, path))).toMatchObject({
          code: "PATH_UNSAFE",
          facts: { path: path + ending },
        });
        removeDatabase(nodeDisk, path);
        expect(made(path + ending), "what is no file of ours is not removed").not.toBe("nothing");
        rmSync(path + ending, { recursive: true });
        if (ending !== "") writeFileSync(path, "");
      }
    },
  );

  test("is refused if it is another user's", () => {
    const theirs: Disk = {
      ...nodeDisk,
      stat: () => ({ kind: "file", size: 0, dev: 1, ino: 1, mtimeMs: 0, links: 1, owner: 1001 }),
    };
    vi.spyOn(process, "geteuid").mockReturnValue(1000);
    expect(refusalOf(() => makeDatabaseFile(theirs, "/some.sqlite"))).toMatchObject({ code: "STORE_FORBIDDEN" });
  });

  test("that is removed while it is looked at is told as such; one that another process makes first is taken", () => {
    const stats: (DiskStat | null)[] = [null, null, null, null, null, null, null, null, null, null];
    const gone: Disk = { ...nodeDisk, stat: () => stats.shift() ?? null, open: () => ({ close: () => {} }) as never };
    expect(() => makeDatabaseFile(gone, "/some.sqlite")).toThrow(expect.objectContaining({ code: "ESTALE" }));
    using here = place();
    const path = join(here.path, "some.sqlite");
    const raced: Disk = {
      ...nodeDisk,
      open: (name, mode) => {
        writeFileSync(path, "");
        return nodeDisk.open(name, mode);
      },
    };
    expect(makeDatabaseFile(raced, path)).toMatchObject({ kind: "file" });
    const full: Disk = {
      ...nodeDisk,
      open: () => {
        throw Object.assign(new Error("full"), { code: "ENOSPC" });
      },
    };
    expect(() => makeDatabaseFile(full, `${path}-other`)).toThrow(expect.objectContaining({ code: "ENOSPC" }));
  });

  test("holds what its schema makes, or is not ours", () => {
    const schema = "CREATE TABLE one (a INTEGER); CREATE INDEX two ON one (a); PRAGMA user_version=3";
    const holds = (...statements: string[]): boolean => {
      const database = new DatabaseSync(":memory:");
      for (const sql of statements) database.exec(sql);
      const found = hasSchema(database, schema);
      database.close();
      return found;
    };
    expect(holds(schema)).toBe(true);
    expect(holds(schema, "INSERT INTO one VALUES (1)")).toBe(true);
    expect(holds()).toBe(false);
    expect(holds(schema, "DROP INDEX two")).toBe(false);
    expect(holds(schema, "CREATE VIEW three AS SELECT 1")).toBe(false);
    expect(holds("CREATE VIEW one AS SELECT 1 AS a")).toBe(false);
    expect(holds("CREATE TABLE one (a TEXT); CREATE INDEX two ON one (a)")).toBe(false);
  });
});

describe("whose a file may be", () => {
  const file: DiskStat = { kind: "file", size: 0, dev: 1, ino: 1, mtimeMs: 0, links: 1 };
  const asks = (user: number | undefined, owner: number | undefined): string => {
    vi.spyOn(process, "geteuid").mockImplementation(() => user as number);
    if (user === undefined) Object.assign(process, { geteuid: undefined });
    try {
      assertStoreFile("/store/file", { ...file, ...(owner === undefined ? {} : { owner }) });
      return "taken";
    } catch (error) {
      return (error as HoldfastError).code;
    } finally {
      vi.restoreAllMocks();
    }
  };
  test.each([
    ["one's own", 1000, 1000, "taken"],
    ["root's", 1000, 0, "taken"],
    ["another user's", 1000, 1001, "STORE_FORBIDDEN"],
    ["root looks at another user's", 0, 1001, "taken"],
    ["where files belong to nobody", 1000, undefined, "taken"],
  ])("%s", (_what, user, owner, expected) => {
    expect(asks(user, owner)).toBe(expected);
  });

  test("the refusal names both users, and what to do", () => {
    vi.spyOn(process, "geteuid").mockReturnValue(1000);
    const { message, facts } = refusalOf(() => assertStoreFile("/store/file", { ...file, owner: 1001 }));
    expect(facts).toEqual({ path: "/store/file", owner: 1001, user: 1000 });
    expect(message).toContain("uid 1001; this process runs as 1000");
    expect(message).toContain('"chown -R 1000"');
  });

  test("snapshots by hard links are read like any other", () => {
    using here = place();
    writeFileSync(join(here.path, "one"), "content");
    linkSync(join(here.path, "one"), join(here.path, "two"));
    const opened = nodeDisk.open(join(here.path, "two"), "read");
    expect(opened.stat()).toMatchObject({ kind: "file", links: 2 });
    opened.close();
  });

  test("root is told that the store belongs to somebody else", async (context) => {
    needs(context, "another user's folder", process.getuid?.() === 0 ? noPosix : "needs root");
    using here = place();
    const root = join(here.path, "store");
    mkdirSync(root);
    await using mine = await openFolderStore(root);
    expect(mine.warnings).toEqual([]);
    chownSync(root, 1234, 1234);
    await using theirs = await openFolderStore(root);
    expect(theirs.warnings).toEqual([expect.stringMatching(/belongs to user 1234.*"sudo -u #1234"/)]);
  });
});

describe("errors of the system, in the right words", () => {
  const words: [errno: string, code: string, why: RegExp, never?: RegExp][] = [
    ["ENOSPC", "STORE_FULL", /no space left/],
    ["EDQUOT", "STORE_FULL", /quota/, /no space left/],
    ["EFBIG", "STORE_FULL", /maximum file size.*ulimit -f/s, /space/],
    ["EACCES", "STORE_FORBIDDEN", /permission denied.*owner/s],
    ["EPERM", "STORE_FORBIDDEN", /permission denied.*owner/s],
    ["EROFS", "STORE_FORBIDDEN", /the file system is read-only/, /owner|permission/],
    ["ELOOP", "PATH_UNSAFE", /symbolic link/],
    ["ENOTDIR", "PATH_UNSAFE", /expected a folder/],
    ["EISDIR", "PATH_UNSAFE", /expected a file, found a folder/],
    ["EEXIST", "PATH_UNSAFE", /already has that name/],
    ["ENXIO", "PATH_UNSAFE", /a socket or a device/],
    ["ENOENT", "STORE_IO", /it does not exist/, /disk/],
    ["ENAMETOOLONG", "STORE_IO", /path is longer/, /disk reported/],
    ["EMFILE", "STORE_IO", /this process has too many files open.*ulimit -n/s, /disk reported/],
    ["ENFILE", "STORE_IO", /this machine has too many files open/, /disk reported/],
    ["ENOMEM", "STORE_IO", /out of memory/, /disk reported/],
    ["EIO", "STORE_IO", /the disk reported an error/],
    ["EWHATEVER", "STORE_IO", /the disk reported an error/],
  ];
  test.each(words)("%s", (errno, code, why, never) => {
    const cause = Object.assign(new Error("it failed"), { code: errno });
    const failure = diskFailure(cause, "do it", "/some/path", "Nothing was touched.");
    expect(failure).toMatchObject({ code, facts: { path: "/some/path", errno }, cause });
    expect(failure.message).toMatch(why);
    expect(failure.message).toMatch(
      new RegExp(String.raw`^Could not do it: .* \(${errno}, /some/path\)\. Nothing was touched\. [A-Z].*\.$`),
    );
    if (never) expect(failure.message).not.toMatch(never);
  });

  test("which of them end when space returns, which a reader need not mind, which are nobody's fault", () => {
    const all = words.map(([errno]) => errno);
    const those = (is: (error: unknown) => boolean): string[] => all.filter((code) => is({ code }));
    expect(those(isFull)).toEqual(["ENOSPC", "EDQUOT", "EFBIG"]);
    expect(those(isForbidden)).toEqual(["EACCES", "EPERM", "EROFS"]);
    expect(isForbidden({ code: "ERR_ACCESS_DENIED" })).toBe(true);
    expect(those(isGeneral)).toEqual(["EMFILE", "ENFILE", "ENOMEM"]);
    for (const is of [isFull, isForbidden, isGeneral]) expect(is(new Error("no code"))).toBe(false);
  });

  test("what is ours stays as it is, and what is no error of the system is thrown", () => {
    const ours = new HoldfastError("PATH_UNSAFE", "said already");
    expect(diskFailure(ours, "do it", "/path", "")).toBe(ours);
    expect(() => diskFailure(new TypeError("a mistake"), "do it", "/path", "")).toThrow(TypeError);
  });
});

describe("S14: which file systems are warned of", () => {
  const mountinfo = [
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "30 21 0:45 / /mnt/ssh rw,nosuid,nodev shared:2 master:1 - fuse.sshfs me@host:/home rw,user_id=0",
    "31 21 0:300 / /mnt/bucket rw - fuse.gcsfuse bucket rw",
    "32 21 8:17 / /mnt/windows rw - fuseblk /dev/sdb1 rw",
    "33 21 0:47 / /mnt/host rw - virtiofs host rw",
    "34 21 0:48 / /mnt/some rw - fuse whatever rw",
    "35 21 0:49 / /var/lib/containers rw - fuse.fuse-overlayfs fuse-overlayfs rw",
    "36 21 259:5 / /mnt/nvme rw - xfs /dev/nvme0n1p5 rw",
    "broken line",
    "",
  ].join("\n");
  /** As the kernel packs the two parts of a device's number. */
  const dev = (major: number, minor: number): number =>
    Number(
      (BigInt(minor) & 0xffn) |
        ((BigInt(major) & 0xfffn) << 8n) |
        ((BigInt(minor) & ~0xffn) << 12n) |
        ((BigInt(major) & ~0xfffn) << 32n),
    );
  test.each([
    ["sshfs", dev(0, 45), "fuse.sshfs", true],
    ["gcsfuse, with a number of more than eight bits", dev(0, 300), "fuse.gcsfuse", true],
    ["ntfs-3g, which is local", dev(8, 17), "fuseblk", false],
    ["a folder of the host", dev(0, 47), "virtiofs", true],
    ["any other FUSE", dev(0, 48), "fuse", true],
    ["what a container has its files on", dev(0, 49), "fuse.fuse-overlayfs", false],
  ])("%s", (_what, device, kind, isNetwork) => {
    expect(mountKind(mountinfo, device)).toBe(kind);
    expect(isNetworkMount(kind)).toBe(isNetwork);
  });

  test("a mount that is not in the table, and no table at all", () => {
    expect(mountKind(mountinfo, dev(0, 99))).toBeNull();
    expect(mountKind(mountinfo, dev(259, 5))).toBe("xfs");
    expect(mountKind("", dev(0, 45))).toBeNull();
  });

  test("where something is mounted, with the characters that the table escapes", () => {
    const text = String.raw`36 35 98:0 /mnt1 /data/my\040store\134.db rw,noatime master:1 - ext3 /dev/root rw`;
    expect(mountPoints(`${text}\n`)).toEqual([String.raw`/data/my store\.db`, ""]);
  });

  test("by the number that the kernel gives, where that tells", () => {
    expect([
      NETWORK_KINDS.get(0x6969),
      NETWORK_KINDS.get(0xff534d42),
      NETWORK_KINDS.get(0x01021997),
      NETWORK_KINDS.get(0xef53),
    ]).toEqual(["nfs", "cifs", "9p", undefined]);
    expect(NETWORK_KINDS.has(FUSE), "of FUSE it does not").toBe(false);
  });

  test("this machine's own disk is not", async () => {
    using here = place();
    expect(nodeDisk.networkKind(here.path)).toBeNull();
    await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, networkKind: () => "fuse.sshfs" } });
    expect(store.warnings).toEqual([
      `${here.path} is on a network file system (fuse.sshfs), whose locks and syncs are unreliable: ` +
        "acknowledged records may not survive a crash, and two processes may write to one session. Move the store to a local disk.",
    ]);
  });
});

describe("P1: a session is durable only if the way to it is", () => {
  const root = "/data/deep/store";

  /** Somebody who dies just before syncing `folder`, having made what is in it. */
  async function leaveUnsynced(folder: string): Promise<SimulatedDisk> {
    const disk = new SimulatedDisk({ root });
    disk.makeFolder("/data");
    disk.syncFolder("/");
    for (const made of ["/data/deep", root]) {
      disk.makeFolder(made);
      if (made !== join(folder, made.slice(folder.length + 1).split("/")[0]!)) disk.syncFolder(join(made, ".."));
    }
    disk.kill();
    return disk;
  }

  test.each(["/data", "/data/deep"])(
    "folders that another process has just made in %s are synced before anything is acknowledged",
    async (folder) => {
      const dead = await leaveUnsynced(folder);
      const disk = dead.process();
      const store = await openFolderStore(root, { disk, catalogue: false });
      const id = newId();
      const journal = await store.create(id, [{ kind: "note" }]);
      await journal.append({ kind: "acknowledged" });
      for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
        const after = disk.afterCrash(seed);
        await using again = await openFolderStore(root, { disk: after, catalogue: false });
        expect((await again.read(id)).records.map(({ kind }) => kind)).toContain("acknowledged");
      }
    },
  );

  const refusing = (refused: string, code: string): Disk => {
    const disk = new SimulatedDisk({ root });
    const syncFolder: Disk["syncFolder"] = (path) => {
      if (path === refused) throw Object.assign(new Error("not allowed"), { code });
      disk.syncFolder(path);
    };
    return new Proxy(disk, { get: (target, name) => (name === "syncFolder" ? syncFolder : bound(target, name)) });
  };

  test("folders above the store that may not be read are somebody else's, and need not be synced", async () => {
    for (const code of ["EACCES", "EINVAL"]) {
      const disk = refusing("/", code);
      disk.makeFolder("/data");
      const store = await openFolderStore(root, { disk, catalogue: false });
      await (await store.create(newId(), [])).close();
    }
  });

  test("but what was just made there must be; and an error of the disk is told", async () => {
    const made = await openFolderStore(root, { disk: refusing("/", "EACCES"), catalogue: false });
    await expect(made.create(newId(), [])).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    const failing = refusing("/", "EIO");
    failing.makeFolder("/data");
    const store = await openFolderStore(root, { disk: failing, catalogue: false });
    await expect(store.create(newId(), [])).rejects.toMatchObject({ code: "STORE_IO" });
  });
});

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === "function" ? value.bind(target) : value;
}

function openDescriptors(): number {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
}

function patch(name: "lstatSync" | "openSync", replacement: unknown): void {
  Object.assign(fs, { [name]: replacement });
  syncBuiltinESMExports();
}

function watchCalls(name: "openSync"): () => unknown[] {
  const original = fs[name];
  const calls: unknown[] = [];
  patch(name, (...given: Parameters<typeof original>) => {
    calls.push(given[0]);
    return original(...given);
  });
  return () => {
    patch(name, original);
    return calls;
  };
}

function whyNoPython(): string | null {
  try {
    execFileSync("python3", ["-c", "import fcntl; fcntl.F_SETLEASE"], { stdio: "ignore" });
    return null;
  } catch {
    return "needs Python";
  }
}
