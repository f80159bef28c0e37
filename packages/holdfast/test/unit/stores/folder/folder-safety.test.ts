import { fork } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError, isHoldfastError, newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Journal } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { modesOf, place, treeOf } from "../../../place.ts";

const codeOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise;
    return "no error";
  } catch (error) {
    return error instanceof HoldfastError ? error.code : String(error);
  }
};

/** Can another process take the lease now? */
async function probe(root: string, id: string): Promise<string> {
  const child = fork(join(import.meta.dirname, "lease-probe.ts"), [root, id], {
    execArgv: ["--conditions=holdfast-source"],
  });
  const [answer] = await new Promise<[string]>((resolve, reject) => {
    child.once("message", (message) => resolve([String(message)]));
    child.once("error", reject);
    child.once("exit", (status) => reject(new Error(`the probe ended with ${status}`)));
  });
  return answer;
}

describe("C24: names and modes", () => {
  test("umask 000: folders 0700 and files 0600, temporary and derived ones too", async () => {
    using here = place();
    const root = join(here.path, "deep", "store");
    const umask = process.umask(0);
    try {
      await using store = await openFolderStore(root);
      const id = newId();
      const journal = await store.create(id, []);
      await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
      await journal.close();
      appendFileSync(join(root, "sessions", id, "000002.jsonl"), "torn");
      const opened = await store.open(id);
      await opened.journal.append({ kind: "x" });
      await opened.journal.close();
      await store.pack(id);
      await store.list();
      for (const [path, mode] of modesOf(join(here.path, "deep")))
        expect(mode, path).toBe(mode.startsWith("d") ? "d700" : "f600");
    } finally {
      process.umask(umask);
    }
  });

  test.each(["../../etc/x", "", "0199aaaa", "0199AAAA-BBBB-7CCC-8DDD-000000000001", "a/b", "..", "\0"])(
    "an id like %j is refused, and touches nothing",
    async (id) => {
      using here = place();
      await using store = await openFolderStore(join(here.path, "store"));
      const before = treeOf(here.path);
      const calls = [
        store.create(id, []),
        store.open(id),
        store.read(id),
        store.delete(id),
        store.verify(id),
        store.has(id),
        store.holder(id),
        store.pack(id),
      ];
      expect(new Set(await Promise.all(calls.map(codeOf)))).toEqual(new Set(["ID_INVALID"]));
      expect(treeOf(here.path)).toEqual(before);
    },
  );

  test("a symbolic link in place of a session, of a segment or of a lease is not followed", async () => {
    using here = place();
    await using store = await openFolderStore(join(here.path, "store"));
    const target = newId();
    await (await store.create(target, [{ kind: "session" }])).close();
    const sessions = join(here.path, "store", "sessions");
    const outside = join(here.path, "outside");
    mkdirSync(outside);
    cpSync(join(sessions, target, "000001.jsonl"), join(outside, "000001.jsonl"));

    const linked = newId();
    symlinkSync(outside, join(sessions, linked));
    expect(await codeOf(store.open(linked))).toBe("PATH_UNSAFE");
    expect(await codeOf(store.read(linked))).toBe("PATH_UNSAFE");
    expect(await codeOf(store.delete(linked))).toBe("PATH_UNSAFE");

    const segment = newId();
    mkdirSync(join(sessions, segment));
    symlinkSync(join(outside, "000001.jsonl"), join(sessions, segment, "000001.jsonl"));
    expect(await codeOf(store.open(segment))).toBe("PATH_UNSAFE");

    const leased = newId();
    writeFileSync(join(outside, "precious"), "content");
    symlinkSync(join(outside, "precious"), join(here.path, "store", "leases", leased));
    expect(await codeOf(store.create(leased, []))).toBe("PATH_UNSAFE");
    expect(readFileSync(join(outside, "precious"), "utf8")).toBe("content");
    const { sessions: listed } = await store.list();
    expect(listed.find(({ id }) => id === target)).toEqual(
      expect.not.objectContaining({ unreadable: expect.anything() }),
    );
    for (const id of [linked, segment]) {
      expect(listed.find((one) => one.id === id)).toMatchObject({
        summary: null,
        unreadable: { code: "PATH_UNSAFE", message: expect.stringMatching(/is a symbolic link/) },
      });
    }
    expect(listed).toHaveLength(3);
  });

  test("a newline and an escape sequence in a title stay in one line, verbatim", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    const title = 'a\nb\r\n\u001b[2J\u202e"}\n{"seq":1';
    await (await store.create(id, [{ kind: "session", title }])).close();
    expect((await store.read(id)).records[1]).toMatchObject({ title });
    expect(readFileSync(join(here.path, "sessions", id, "000001.jsonl"), "utf8").split("\n")).toHaveLength(4);
  });

  test("a store in place of a file is refused", async () => {
    using here = place();
    writeFileSync(join(here.path, "file"), "");
    expect(await codeOf(openFolderStore(join(here.path, "file")))).toBe("PATH_UNSAFE");
    expect(await codeOf(openFolderStore(join(here.path, "file", "below")))).toBe("PATH_UNSAFE");
  });
});

describe("C16: no append ever goes to a file that has been unlinked or replaced without the writer noticing", () => {
  const harms: [name: string, harm: (path: string) => void, code: string, why: RegExp][] = [
    ["unlinked", (path) => unlinkSync(path), "FILE_REPLACED", /is gone/],
    ["replaced by a copy", replaceByCopy, "FILE_REPLACED", /was replaced by another file/],
    [
      "written to by somebody else",
      (path) => appendFileSync(path, "hello\n"),
      "FILE_REPLACED",
      /was changed by another/,
    ],
    [
      "its folder moved away",
      (path) => renameSync(join(path, ".."), `${join(path, "..")}-moved`),
      "FILE_REPLACED",
      /is gone/,
    ],
    [
      "the lease removed",
      (path) => rmSync(path.replace("/sessions/", "/leases/").replace(/\/000001.jsonl$/, "")),
      "LEASE_LOST",
      /lease/i,
    ],
  ];
  test.each(harms)("%s", async (_name, harm, code, why) => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append({ kind: "acknowledged" });
    harm(join(here.path, "sessions", id, "000001.jsonl"));
    const failures: string[] = [];
    journal.onFailure((failure) => failures.push(failure.code));
    expect(await codeOf(journal.append({ kind: "in doubt" }))).toBe(code);
    expect(failures).toEqual([code]);
    expect(journal.failure?.code).toBe(code);
    expect(journal.failure?.message).toMatch(why);
    expect(await codeOf(journal.append({ kind: "more" })), "and it takes no more appends").toBe(code);
    expect(await codeOf(journal.flush())).toBe(code);
    await journal.close();
  });

  test.each(harms)("%s: found out without an append, too", async (_name, harm, code) => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const confirming: ((journal: Journal) => Promise<unknown>)[] = [
      (journal) => journal.flush(),
      async (journal) => journal.flushSync(),
      (journal) => journal.append({ kind: "acknowledged" }, { key: "k" }),
    ];
    for (const confirm of confirming) {
      const id = newId();
      const journal = await store.create(id, []);
      await journal.append({ kind: "acknowledged" }, { key: "k" });
      await confirm(journal);
      harm(join(here.path, "sessions", id, "000001.jsonl"));
      expect(await codeOf(confirm(journal))).toBe(code);
      expect(journal.failure?.code).toBe(code);
      await journal.close();
    }
  });
});

describe("C15: the lease", () => {
  test("copying, reading, listing, verifying a session in its own writer's process does not give the lease away (S13)", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append({ kind: "x" });
    expect(await probe(here.path, id)).toBe("SESSION_BUSY");
    await store.read(id);
    await store.verify(id);
    await store.list();
    await store.holder(id);
    await store.gc({ graceMs: 0 });
    cpSync(join(here.path, "sessions", id), join(here.path, "copy"), { recursive: true });
    expect(await codeOf(store.open(id))).toBe("SESSION_BUSY");
    expect(await codeOf(store.delete(id))).toBe("SESSION_BUSY");
    expect(await codeOf(store.pack(id))).toBe("SESSION_BUSY");
    await using second = await openFolderStore(here.path);
    expect(await codeOf(second.open(id))).toBe("SESSION_BUSY");
    expect(await second.holder(id)).toMatchObject({ pid: process.pid });
    expect(await probe(here.path, id), "still held").toBe("SESSION_BUSY");
    await journal.close();
    expect(await probe(here.path, id)).toBe("free");
    const { journal: again } = await second.open(id);
    await again.close();
  });

  test("a lease file that somebody wrote into is emptied and taken", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const id = newId();
    await (await store.create(id, [])).close();
    writeFileSync(join(here.path, "leases", id), "garbage".repeat(100));
    expect(await store.holder(id)).toBeNull();
    await (await store.open(id)).journal.close();
  });
});

test("a lease that is a hard link to a file with content is refused, and that file is not emptied", async () => {
  using here = place();
  await using store = await openFolderStore(join(here.path, "store"));
  const id = newId();
  await (await store.create(id, [])).close();
  const [lease, precious] = [join(here.path, "store", "leases", id), join(here.path, "precious")];
  rmSync(lease);
  writeFileSync(precious, "content");
  linkSync(precious, lease);
  expect(await codeOf(store.open(id))).toBe("PATH_UNSAFE");
  expect(readFileSync(precious, "utf8")).toBe("content");
  // A snapshot of the whole store by hard links gives the leases another name too.
  rmSync(lease);
  writeFileSync(join(here.path, "empty"), "");
  linkSync(join(here.path, "empty"), lease);
  await (await store.open(id)).journal.close();
});

test("P6: a lease file that may not be written to is refused, and not shared", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  await (await store.create(id, [])).close();
  const forbidden = (): never => {
    throw Object.assign(new Error("not allowed"), { code: "EACCES" });
  };
  await using other = await openFolderStore(here.path, { disk: { ...nodeDisk, lock: forbidden } });
  expect(await codeOf(other.open(id))).toBe("STORE_FORBIDDEN");
  // Root may write to anything: as another user it is the kernel that says no.
  chmodSync(join(here.path, "leases", id), 0o444);
  expect(await other.holder(id), "looking needs no right to write").toBeNull();
});

test("a copy of the sessions alone, on a medium that cannot be written to, can be read", async () => {
  using here = place();
  const id = newId();
  {
    await using store = await openFolderStore(here.path);
    await (await store.create(id, [{ kind: "note" }])).close();
  }
  for (const name of readdirSync(here.path))
    if (name !== "sessions") rmSync(join(here.path, name), { recursive: true, force: true });
  const makeFolder = (path: string): boolean => {
    if (existsSync(path)) return false;
    throw Object.assign(new Error("read-only"), { code: "EROFS" });
  };
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, makeFolder }, catalogue: false });
  expect((await store.list()).sessions.map((session) => session.id)).toEqual([id]);
  expect((await store.read(id)).records.map(({ kind }) => kind)).toContain("note");
  expect(await store.verify(id)).toMatchObject({ beingWritten: false, damaged: [] });
  expect(await store.holder(id)).toBeNull();
  expect(await store.gc()).toEqual({ removed: [] });
  for (const refused of [store.open(id), store.delete(id), store.create(newId(), [])])
    expect(await codeOf(refused)).toBe("STORE_FORBIDDEN");
  expect(readdirSync(here.path)).toEqual(["sessions"]);
});

test("P9: a session that may not be read is listed with the reason, and the others as ever", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const ids = [newId(), newId()];
  for (const id of ids) await (await store.create(id, [])).close();
  const before = (await store.list()).sessions;
  const other = join(here.path, "sessions", ids[1]!);
  const stat: typeof nodeDisk.stat = (path) => {
    if (path.startsWith(other)) throw Object.assign(new Error("not allowed"), { code: "EACCES", syscall: "lstat" });
    return nodeDisk.stat(path);
  };
  const known = before.find(({ id }) => id === ids[1])!;
  const unknown = { id: ids[1], at: "1970-01-01T00:00:00.000Z", head: 0, closed: false, summary: null };
  const unreadable = {
    code: "STORE_FORBIDDEN",
    message: expect.stringContaining(`permission denied (EACCES, ${other})`),
  };
  for (const [options, row] of [
    [{}, known],
    [{ catalogue: false } as const, unknown],
  ] as const) {
    const disk = { ...nodeDisk, stat };
    await using reader = await openFolderStore(here.path, { disk, ...options });
    for (const _again of [1, 2]) {
      const { sessions } = await reader.list();
      expect(sessions.map(({ id }) => id).sort()).toEqual([...ids].sort());
      expect(sessions.find(({ id }) => id === ids[0])).toEqual(before.find(({ id }) => id === ids[0]));
      expect(sessions.find(({ id }) => id === ids[1])).toEqual({ ...row, unreadable });
    }
  }
  await using healthy = await openFolderStore(here.path);
  expect((await healthy.list()).sessions, "and nothing was forgotten").toEqual(before);
});

test("a process that has too many files open is told so: that is no session's fault", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  await (await store.create(newId(), [])).close();
  const open: typeof nodeDisk.open = (path, mode) => {
    if (path.endsWith(".jsonl")) throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
    return nodeDisk.open(path, mode);
  };
  await using reader = await openFolderStore(here.path, { disk: { ...nodeDisk, open }, catalogue: false });
  await expect(reader.list()).rejects.toMatchObject({
    code: "STORE_IO",
    message: expect.stringContaining("too many files open (EMFILE"),
  });
});

test("P6: those who ask who holds a lease do not take each other for its holder", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  await (await store.create(id, [])).close();
  const path = join(here.path, "leases", id);
  const one = new DatabaseSync(path, { readOnly: true, timeout: 0 });
  one.exec("BEGIN; SELECT count(*) FROM sqlite_schema");
  expect(await store.holder(id)).toBeNull();
  one.close();
});

test("C17: gc does not remove a folder that somebody is just making a session of", async () => {
  using here = place();
  const id = newId();
  await using maker = await openFolderStore(here.path);
  mkdirSync(join(here.path, "sessions", id));
  let made: Promise<unknown> | null = null;
  // Between gc's look at the folder and its lease, another store creates the session.
  const disk: Disk = {
    ...nodeDisk,
    lock: (path) => {
      if (!made && path.endsWith(id)) made = maker.create(id, [{ kind: "session" }]);
      return nodeDisk.lock(path);
    },
  };
  await using collector = await openFolderStore(here.path, { disk, clock: () => Date.now() + 30 * 24 * 3600 * 1000 });
  await collector.gc({ graceMs: 0 });
  await made;
  expect(await maker.has(id)).toBe(true);
});

test("a store that is closed while a session is opened keeps no lease", async () => {
  using here = place();
  const store = await openFolderStore(here.path);
  const id = newId();
  await (await store.create(id, [])).close();
  const opening = store.open(id).then(
    () => "open",
    (error: unknown) => (error as HoldfastError).code,
  );
  await store.close();
  expect(await opening).toBe("STORE_CLOSED");
  await using again = await openFolderStore(here.path);
  await (await again.open(id)).journal.close();
});

test("C17: a session between creation and first prompt is tidied away by nobody", async () => {
  using here = place();
  await using first = await openFolderStore(here.path);
  const id = newId();
  const journal = await first.create(id, [{ kind: "session", title: "young" }]);
  await using second = await openFolderStore(here.path, { clock: () => Date.now() + 30 * 24 * 3600 * 1000 });
  expect((await second.gc({ graceMs: 0 })).removed).toEqual([]);
  expect((await second.list()).sessions.map((listed) => listed.id)).toEqual([id]);
  await journal.append({ kind: "prompt" });
  await journal.close();
});

test("delete goes to the trash, and gc empties it after the grace time", async () => {
  using here = place();
  let now = Date.now();
  await using store = await openFolderStore(here.path, { clock: () => now });
  const id = newId();
  await (await store.create(id, [])).close();
  await store.delete(id);
  expect(await store.has(id)).toBe(false);
  expect(isHoldfastError(await store.open(id).catch((error: unknown) => error), "SESSION_NOT_FOUND")).toBe(true);
  expect((await store.gc()).removed).toEqual([]);
  now += 8 * 24 * 3600 * 1000;
  expect((await store.gc()).removed).toEqual([id]);
  expect([...treeOf(here.path).keys()].filter((path) => path.includes(id))).toEqual([]);
});

function replaceByCopy(path: string): void {
  const bytes = readFileSync(path);
  unlinkSync(path);
  writeFileSync(`${path}.copy`, bytes);
  renameSync(`${path}.copy`, path);
}
