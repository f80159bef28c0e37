import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openStore, type SearchHit, type Store, type Summary } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test, vi } from "vitest";
import { findDialect } from "../../../src/dialects/index.ts";
import { sessionSummariser } from "../../../src/listing/fold-row.ts";
import { TEXT_CHARS_MAX } from "../../../src/search/texts.ts";
import { openStoreWith } from "../../../src/session/store.ts";
import { openFolderStore } from "../../../src/stores/folder/store.ts";
import { place } from "../../place.ts";
import { nestedText, putSession, rawLine, turnBodies } from "../../raw-session.ts";

/** P9: one session that is bad in whatever way costs nothing but itself, and the user is told. */

const DEEP = nestedText(1_000_000);

async function goodSession(store: Store, words: string): Promise<string> {
  const session = await store.create({ dialect: "ai-sdk", app: "test" });
  const turn = await session.startTurn({ role: "user", content: words });
  await turn.append({ role: "assistant", content: `an answer to ${words.slice(0, 4000)}` });
  await turn.end();
  await session.close();
  return session.id;
}

const idsOf = (sessions: readonly { readonly id: string }[]): string[] => sessions.map(({ id }) => id);

async function found(store: Store, words: string): Promise<{ hits: SearchHit[]; incomplete: Map<string, unknown> }> {
  const incomplete = new Map<string, unknown>();
  const onIncomplete = (id: string, why: unknown): void => void incomplete.set(id, why);
  return { hits: await Array.fromAsync(store.search(words, {}, { onIncomplete })), incomplete };
}

describe("a record that nests a million levels deep", () => {
  const bad: Readonly<Record<string, string[]>> = {
    "a prompt": turnBodies({ prompt: `{"role":"user","content":${DEEP}}` }),
    "an answer": turnBodies({
      more: [
        `"kind":"message","id":"a1","turn":1,"step":"a1","message":{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"t","input":${DEEP}}]}`,
      ],
    }),
    "a result": turnBodies({ more: [`"kind":"tool.ended","id":"e","turn":1,"call":"c","name":"t","value":${DEEP}`] }),
    metadata: turnBodies({ more: [`"kind":"patch","id":"p1","metadata":${DEEP}`] }),
    "a note": turnBodies({ more: [`"kind":"note","name":"n","value":${DEEP}`] }),
    "a queued prompt": turnBodies({ more: [`"kind":"queue.put","id":"q","prompt":${DEEP}`] }),
    "an unknown kind": turnBodies({ more: [`"kind":"x-mine","value":${DEEP}`] }),
    "the row for lists": turnBodies({ end: `,"summary":${DEEP}` }),
  };
  test.each(Object.keys(bad))("%s: that record is damage, and all else is read", async (what) => {
    using here = place();
    const id = putSession(here.path, bad[what]!);
    await using store = await openStore(here.path);
    const good = await goodSession(store, "good words");
    const { sessions } = await store.list();
    expect(new Set(idsOf(sessions))).toEqual(new Set([good, id]));
    const reading = await store.read(id);
    expect(reading.recovery.damaged).toMatchObject([{ segment: "000001.jsonl", why: "corrupt" }]);
    expect(JSON.stringify([reading.entries, reading.messages, reading.interruption, reading.attributes])).toBeDefined();
    expect((await store.verify(id)).damaged).toHaveLength(1);
    for await (const record of store.history(id)) expect(JSON.stringify(record)).toBeDefined();
    expect((await found(store, "good words")).hits.length).toBeGreaterThan(0);
    const session = await store.resume(id);
    await (await session.startTurn({ role: "user", content: "go on" })).end();
    await session.close();
    expect((await store.list()).sessions[0]).toMatchObject({ id, status: "idle" });
  });

  test("what a writer may write is read: 1,000 levels below a member", async () => {
    using here = place();
    await using store = await openStore(here.path);
    const session = await store.create({ dialect: "ai-sdk" });
    let deep: unknown = "deep";
    for (let level = 0; level < 999; level++) deep = [deep];
    await session.note("deep", deep as never);
    await session.close();
    expect(JSON.stringify((await store.read(session.id)).attributes.notes["deep"])).toContain("deep");
    expect((await store.verify(session.id)).damaged).toEqual([]);
  });

  test("a long line with brackets in its texts is no deep one", async () => {
    using here = place();
    await using store = await openStore(here.path);
    const words = `${'[{"\\'.repeat(100_000)} end`;
    const id = await goodSession(store, words);
    expect((await store.read<{ content: string }>(id)).messages[0]!.content).toBe(words);
  });
});

describe("a row for lists that is no row", () => {
  const rows = {
    "a number": "5",
    "a text": '"hello"',
    "a list": "[1,2]",
    null: "null",
    "without a title": '{"turns":1}',
    "with turns that are none": '{"title":"x","turns":"many"}',
  };
  test.each(Object.entries(rows))("%s: the records tell", async (_, summary) => {
    using here = place();
    const id = putSession(here.path, turnBodies({ end: `,"summary":${summary}` }));
    await using store = await openStore(here.path);
    for (let i = 0; i < 2; i++)
      expect((await store.list()).sessions).toMatchObject([{ id, title: "hello world", turns: 1, status: "idle" }]);
    await using file = await openSqliteStore(join(here.path, "other.db"), {
      summariser: sessionSummariser(findDialect),
    });
    const session = await store.resume(id);
    await session.rename("a title");
    await session.close();
    expect((await store.list()).sessions).toMatchObject([{ id, title: "a title", turns: 1 }]);
    expect((await file.list()).sessions).toEqual([]);
  });

  test("members of other types, and of any size: what can be used is, and the row that is written stays small", async () => {
    using here = place();
    const long = "x".repeat(3_000_000);
    const odd = {
      title: long,
      turns: 1,
      queued: -3,
      state: "toString",
      queue: { a: 1 },
      parent: 7,
      cwd: long,
      labels: { a: long, b: 5 },
    };
    const id = putSession(here.path, turnBodies({ end: `,"summary":${JSON.stringify(odd)}` }));
    const queue = Array.from({ length: 5000 }, (_, i) => `q${i}`);
    const other = putSession(
      here.path,
      turnBodies({ end: `,"summary":${JSON.stringify({ title: "t", turns: 1, queue, queued: 5000, prompt: long })}` }),
    );
    await using store = await openStore(here.path);
    for (const one of [id, other]) {
      const session = await store.resume(one);
      const before = sizeOf(here.path, one);
      for (let i = 0; i < 5; i++) await (await session.startTurn({ role: "user", content: "go on" })).end();
      await session.close();
      expect(sizeOf(here.path, one) - before).toBeLessThan(64 * 1024);
    }
    const { sessions } = await store.list();
    expect(idsOf(sessions)).toEqual([other, id]);
    expect(sessions[1]!.title.length).toBeLessThan(300);
  });

  const labels = { "a number": "5", "a list": '["a"]', null: "null", mixed: '{"a":5,"b":"x","c":null,"d":{}}' };
  test.each(Object.entries(labels))("labels that are %s: those that are texts are kept", async (name, text) => {
    using here = place();
    const id = putSession(here.path, turnBodies({ session: `,"labels":${text}` }));
    await using store = await openStore(here.path);
    const [summary] = (await store.list()).sessions;
    expect(summary).toMatchObject({ id, turns: 1 });
    expect(summary!.labels).toEqual(name === "mixed" ? { b: "x" } : undefined);
    expect(idsOf((await store.list({ labels: { b: "x" } })).sessions)).toEqual(name === "mixed" ? [id] : []);
    expect((await store.read(id)).attributes.labels).toEqual(name === "mixed" ? { b: "x" } : {});
  });

  test("times that are none: such a session comes last, and the others keep their order", async () => {
    using here = place();
    const ids = ["zzzz", "", "9999-99-99T99:99:99.999Z"].map((at) => putSession(here.path, turnBodies(), at));
    await using store = await openStore(here.path);
    const first = await goodSession(store, "first");
    const second = await goodSession(store, "second");
    const listed = idsOf((await store.list()).sessions);
    expect(listed.slice(0, 2)).toEqual([second, first]);
    expect(new Set(listed.slice(2))).toEqual(new Set(ids));
    expect((await store.resumeLatest({}))?.id).toBe(second);
  });
});

describe("attributes that could not be listed are refused", () => {
  const wrong = {
    "labels.a": { labels: { a: 5 } },
    labels: { labels: ["a"] },
    "labels, too long": { labels: { a: "x".repeat(20_000) } },
    title: { title: 5 },
    cwd: { cwd: "" },
    "cwd, too long": { cwd: `/${"x".repeat(5000)}` },
    app: { app: {} },
    parent: { parent: "x" },
    "parent.session": { parent: { session: 5 } },
  };
  test.each(Object.entries(wrong))("%s", async (name, options) => {
    await using store = await openStore("memory:");
    const error = await store.create({ dialect: "ai-sdk", ...(options as object) }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "ATTRIBUTE_INVALID", facts: { member: name.replace(", too long", "") } });
    expect((await store.list({ empty: true })).sessions).toEqual([]);
  });
});

/** A disk on which these sessions belong to another user. */
function forbidding(hidden: ReadonlySet<string>): Disk {
  const check = (path: string): void => {
    if ([...hidden].some((id) => path.includes(`${id}/`)))
      throw Object.assign(new Error("EACCES"), { code: "EACCES", syscall: "open" });
  };
  return {
    ...nodeDisk,
    open: (path, mode) => {
      check(path);
      return nodeDisk.open(path, mode);
    },
    list: (path) => {
      check(`${path}/`);
      return nodeDisk.list(path);
    },
    stat: (path) => {
      check(path);
      return nodeDisk.stat(path);
    },
  };
}

describe("a session of another user", () => {
  const hidden = new Set<string>();
  const open = (path: string) =>
    openStoreWith((options) => openFolderStore(path, { ...options, disk: forbidding(hidden) }), { app: "test" });

  test("is listed as unreadable, with the reason and what was known of it; the others are listed, searched and resumed", async () => {
    using here = place();
    hidden.clear();
    const unknown = putSession(here.path, turnBodies());
    hidden.add(unknown);
    await using store = await open(here.path);
    const first = await goodSession(store, "first words");
    const second = await goodSession(store, "second words");
    await store.list();
    hidden.add(second);
    const { sessions } = await store.list();
    expect(idsOf(sessions)).toEqual([second, first, unknown]);
    const unreadable = { code: "STORE_FORBIDDEN", message: expect.stringContaining("EACCES") };
    expect(sessions).toMatchObject([
      { title: "second words", unreadable },
      { title: "first words" },
      { title: "", unreadable },
    ]);
    expect(sessions[1]).not.toHaveProperty("unreadable");
    expect(idsOf((await store.list({ unreadable: true })).sessions)).toEqual([second, unknown]);
    expect(idsOf((await store.list({ status: "idle" })).sessions)).toEqual([first]);
    expect(idsOf(await pagesOf(store))).toEqual([second, first, unknown]);
    const { hits, incomplete } = await found(store, "words");
    expect(hits.map(({ session }) => session)).toContain(first);
    expect(new Map([...incomplete])).toEqual(new Map([second, unknown].map((id) => [id, unreadable])));
    const passedOver = vi.fn();
    const resumed = await store.resumeLatest({}, { onPassedOver: passedOver });
    expect(resumed?.id).toBe(first);
    expect(passedOver.mock.calls).toEqual([[second, expect.objectContaining({ code: "STORE_FORBIDDEN" })]]);
    await resumed!.close();
    hidden.clear();
    expect((await store.list()).sessions.filter(({ unreadable: why }) => why)).toEqual([]);
  });

  test("if no other fits, resumeLatest says why; without a listener a warning is emitted", async () => {
    using here = place();
    hidden.clear();
    await using store = await open(join(here.path, "\x1b[2J\x9b31m"));
    const only = await goodSession(store, "words");
    await store.list();
    hidden.add(only);
    await expect(store.resumeLatest({})).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    hidden.clear();
    const older = await goodSession(store, "older");
    const newer = await goodSession(store, "newer");
    await store.list();
    hidden.add(newer);
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    expect((await store.resumeLatest({}))?.id).toBe(older);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(newer), { code: "STORE_FORBIDDEN" });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: Node prints a warning as it is.
    expect(warn.mock.calls.flat().join(" ")).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
    warn.mockRestore();
    hidden.clear();
  });

  test("too many open files is no session's own fault, and is thrown", async () => {
    using here = place();
    putSession(here.path, turnBodies());
    const disk: Disk = {
      ...nodeDisk,
      open: (path, mode) => {
        if (path.endsWith(".jsonl")) throw Object.assign(new Error("EMFILE"), { code: "EMFILE", syscall: "open" });
        return nodeDisk.open(path, mode);
      },
    };
    await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk }));
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_IO", facts: { errno: "EMFILE" } });
  });
});

test("a message of many megabytes is searched by its beginning, and that is said", async () => {
  using here = place();
  await using store = await openStore(here.path);
  const long = await goodSession(store, `needle ${"hay stack ".repeat(TEXT_CHARS_MAX / 8)} thread`);
  const short = await goodSession(store, "needle and thread");
  const needle = await found(store, "needle");
  expect(new Set(needle.hits.map(({ session }) => session))).toEqual(new Set([long, short]));
  expect(needle.incomplete).toEqual(new Map([[long, null]]));
  expect(new Set((await found(store, "thread")).hits.map(({ session }) => session))).toEqual(new Set([short]));
  const index = new DatabaseSync(join(here.path, "search.sqlite"));
  const { chars } = index.prepare("SELECT sum(length(text)) AS chars FROM texts").get() as { chars: number };
  index.close();
  expect(chars).toBeLessThan(1.1 * TEXT_CHARS_MAX);
  // Found again by another process, which need not read it.
  await store.close();
  await using again = await openStore(here.path);
  expect((await found(again, "needle")).incomplete).toEqual(new Map([[long, null]]));
});

test("10,000 texts in one message, and 10,000 messages: all are found", async () => {
  using here = place();
  const texts = Array.from({ length: 10_000 }, (_, i) => ({ type: "text", text: `text${i}` }));
  const one = putSession(here.path, turnBodies({ prompt: JSON.stringify({ role: "user", content: texts }) }));
  const more = Array.from(
    { length: 10_000 },
    (_, i) =>
      `"kind":"message","id":"a${i}","turn":1,"step":"a${i}","message":{"role":"assistant","content":"words${i}"}`,
  );
  const many = putSession(here.path, turnBodies({ more }));
  await using store = await openStore(here.path);
  expect((await found(store, "text9999")).hits).toMatchObject([{ session: one }]);
  expect((await found(store, "words9999")).hits).toMatchObject([{ session: many, message: "a9999" }]);
  expect((await store.read(many)).entries).toHaveLength(10_001);
});

test("gc removes what it can, and tells of what it cannot", async () => {
  using here = place();
  const hiddenTrash = new Set<string>();
  await using store = await openStoreWith((options) =>
    openFolderStore(here.path, { ...options, disk: forbidding(hiddenTrash) }),
  );
  const ids = [await goodSession(store, "one"), await goodSession(store, "two"), await goodSession(store, "three")];
  for (const id of ids) await store.delete(id);
  const [kept] = readdirSync(join(here.path, "trash")).sort();
  hiddenTrash.add(kept!);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await expect(store.gc({ graceMs: 0 })).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
  expect(readdirSync(join(here.path, "trash"))).toEqual([kept]);
});

describe("in an SQLite file", () => {
  test("a row of the catalogue that somebody has spoiled is read from the lines; a line that nests too deep is damage", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const ids: string[] = [];
    {
      await using store = await openStore(`sqlite:${file}`);
      for (const words of ["one", "two", "three"]) ids.push(await goodSession(store, words));
    }
    const database = new DatabaseSync(file);
    for (const [i, summary] of ['"text"', "not JSON", "[1]"].entries())
      database.prepare("UPDATE sessions SET summary = ? WHERE id = ?").run(summary, ids[i]!);
    const key = Number(database.prepare("SELECT key FROM sessions WHERE id = ?").get(ids[0]!)!["key"]);
    const seq = 5;
    const deep = rawLine(seq, `"kind":"message","id":"p1","turn":1,"step":"p1","message":${DEEP}`);
    database.prepare("UPDATE lines SET line = ? WHERE place = ? * 4294967296 + ?").run(Buffer.from(deep), key, seq);
    database.close();
    await using store = await openStore(`sqlite:${file}`);
    const { sessions } = await store.list();
    expect(sessions.map(({ title, turns }) => [title, turns])).toEqual([
      ["three", 1],
      ["two", 1],
      [expect.any(String), 1],
    ]);
    expect((await store.read(ids[0]!)).recovery.damaged).toMatchObject([{ seq }]);
    expect((await found(store, "three")).hits.length).toBeGreaterThan(0);
  });
});

test("a damaged page of an SQLite file costs the records that are on it, and is in the way of no other session", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const ids: string[] = [];
  {
    await using store = await openStore(`sqlite:${file}`);
    // Lines that take a page each.
    for (const words of ["first", "second", "third"])
      ids.push(await goodSession(store, `${words} ${"x".repeat(3000)} end of ${words}`));
  }
  const database = new DatabaseSync(file);
  // As a writer leaves it that is killed: its row is behind its lines.
  database.prepare("UPDATE sessions SET closed = 0, head = 2 WHERE id = ?").run(ids[1]!);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const { page_size: size } = database.prepare("PRAGMA page_size").get() as { page_size: number };
  database.close();
  const bytes = readFileSync(file);
  const at = Math.floor(bytes.indexOf("end of second") / size) * size;
  bytes.fill(0xff, at, at + 8);
  writeFileSync(file, bytes);
  await using store = await openStore(`sqlite:${file}`);
  const { sessions } = await store.list();
  expect(idsOf(sessions)).toEqual([ids[2], ids[1], ids[0]]);
  expect(sessions.map(({ unreadable }) => unreadable)).toEqual([undefined, undefined, undefined]);
  expect((await found(store, "third")).hits[0]).toMatchObject({ session: ids[2] });
  for (const id of ids) {
    const { damaged } = await store.verify(id);
    expect(
      damaged.some(({ segment }) => segment === "000001"),
      id,
    ).toBe(id === ids[1]);
  }
  expect((await store.resumeLatest({}, { onPassedOver: () => undefined }))?.id).toBe(ids[2]);
});

async function pagesOf(store: Store): Promise<Summary[]> {
  const all: Summary[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.list({ limit: 1, ...(after === undefined ? {} : { after }) });
    all.push(...page.sessions);
    if (page.next === undefined) return all;
    after = page.next;
  }
}

function sizeOf(root: string, id: string): number {
  return readFileSync(join(root, "sessions", id, "000001.jsonl")).length;
}

test("P9: a damaged catalogue is made again, once, and lists are right meanwhile", async () => {
  using here = place();
  const ids: string[] = [];
  {
    await using store = await openStore(here.path);
    for (const words of ["one", "two", "three"]) ids.unshift(await goodSession(store, words));
  }
  const path = join(here.path, "catalog.sqlite");
  const change = (sql: string) => () => {
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
  };
  const spoil: Readonly<Record<string, () => void>> = {
    "no SQLite": () => writeFileSync(path, "x".repeat(8192)),
    "cut short": () => writeFileSync(path, readFileSync(path).subarray(0, 4096)),
    "another schema": change("PRAGMA user_version=99"),
    "a row of other types": change("UPDATE sessions SET summary = '5', stamp = '9999-12-31T00:00:00.000Z'"),
    "a summary that is no JSON": change("UPDATE sessions SET summary = 'x'"),
    "no table": change("DROP TABLE sessions"),
    gone: () => rmSync(path),
    "a folder": () => {
      rmSync(path, { force: true });
      mkdirSync(path);
    },
  };
  for (const [name, damage] of Object.entries(spoil)) {
    for (const ending of ["-wal", "-shm"]) rmSync(path + ending, { force: true });
    damage();
    let reads = 0;
    const disk: Disk = {
      ...nodeDisk,
      open: (file, mode) => {
        if (mode === "read" && file.endsWith(".jsonl")) reads++;
        return nodeDisk.open(file, mode);
      },
    };
    await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk }));
    expect(idsOf((await store.list()).sessions), name).toEqual(ids);
    expect(reads, `${name}: each journal is looked at once`).toBe(3);
    reads = 0;
    expect(idsOf((await store.list()).sessions), name).toEqual(ids);
    // Where a folder stands in its place nothing can be kept: lists are answered from the files each time.
    expect(reads, `${name}: and not again`).toBe(name === "a folder" ? 3 : 0);
  }
});

test("P9: a session that becomes unreadable while the store is open is marked in the next list", async () => {
  using here = place();
  await using store = await openStore(here.path);
  const ids = [await goodSession(store, "one"), await goodSession(store, "two")];
  for (let look = 0; look < 2; look++) expect(idsOf((await store.list()).sessions)).toEqual([ids[1], ids[0]]);
  const segment = join(here.path, "sessions", ids[0]!, "000001.jsonl");
  rmSync(segment);
  mkdirSync(segment);
  const { sessions } = await store.list();
  expect(sessions.map(({ id, unreadable }) => [id, unreadable?.code])).toEqual([
    [ids[1], undefined],
    [ids[0], "PATH_UNSAFE"],
  ]);
});

test("a session whose files are removed while the store is open leaves the list, though its folder stays", async () => {
  using here = place();
  await using store = await openStore(here.path);
  const ids = [await goodSession(store, "one"), await goodSession(store, "two")];
  expect(idsOf((await store.list()).sessions)).toEqual([ids[1], ids[0]]);
  const folder = join(here.path, "sessions", ids[0]!);
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  for (let look = 0; look < 2; look++) expect(idsOf((await store.list()).sessions)).toEqual([ids[1]]);
});
