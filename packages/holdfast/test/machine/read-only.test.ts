import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { type JournalRecord, newId, openStore } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { openJournalStore } from "holdfast/store";
import { describe, expect, type TestContext, test } from "vitest";
import { run } from "../../../testkit/src/machine/probe.ts";
import { modesOf, place, treeOf } from "../place.ts";
import { needs } from "./allowed.ts";

const NOBODY = 65_534;
const WRITER = join(import.meta.dirname, "../unit/stores/sqlite/sqlite-writer.ts");
const SOURCE = "--conditions=holdfast-source";
const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

/**
 * Everything that reads, and that everything that writes is refused; as JSON, since a process of somebody else's does
 * it.
 */
const LOOK = `
  const [address, id] = process.argv.slice(1);
  const { newId } = await import(${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)});
  const { openJournalStore } = await import(${JSON.stringify(new URL("../../src/store.ts", import.meta.url).href)});
  const texts = (records) => records.filter(({ kind }) => kind === "note").map(({ text }) => text);
  const refused = (promise) => promise.then(() => "went well", ({ code, message }) => code + (/read-only|permission denied/.test(message) ? "" : message));
  let said;
  try {
    const store = await openJournalStore(address);
    const history = [];
    for await (const record of store.history(id)) history.push(record);
    const followed = [];
    for await (const record of store.follow(id)) {
      followed.push(record);
      if (record.seq === history.at(-1).seq) break;
    }
    const { records, damaged, missing } = await store.verify(id);
    said = {
      listed: (await store.list()).sessions.map(({ id, head }) => [id, head]),
      has: [await store.has(id), await store.has(newId())],
      holder: await store.holder(id),
      read: texts((await store.read(id)).records),
      history: texts(history),
      followed: texts(followed),
      verified: [records, damaged.length, missing.length],
      writing: [
        await refused(store.open(id)),
        await refused(store.create(newId(), [])),
        await refused(store.delete(id)),
      ],
      warnings: store.warnings,
    };
    await store.close();
  } catch ({ code, message }) {
    said = { code, message };
  }
  console.log(JSON.stringify(said));`;

function look(address: string, id: string, user: { uid?: number; gid?: number } = {}): Record<string, unknown> {
  const args = [SOURCE, "--input-type=module", "-e", LOOK, address, id];
  const child = spawnSync(process.execPath, args, { ...user, encoding: "utf8" });
  expect(child.stderr).toBe("");
  return JSON.parse(child.stdout) as Record<string, unknown>;
}

const asNobody = { uid: NOBODY, gid: NOBODY };
const forbidden = ["STORE_FORBIDDEN", "STORE_FORBIDDEN", "STORE_FORBIDDEN"];

function seen(id: string, head: number, texts: string[]): Record<string, unknown> {
  return {
    listed: [[id, head]],
    has: [true, false],
    holder: null,
    read: texts,
    history: texts,
    followed: texts,
    verified: [head, 0, 0],
    writing: forbidden,
    warnings: [],
  };
}

async function write(address: string): Promise<{ readonly id: string; readonly head: number }> {
  await using store = await openJournalStore(address);
  const id = newId();
  const journal = await store.create(id, [note("a")]);
  await journal.append(note("b"));
  await journal.close();
  return { id, head: journal.head };
}

/** A writer that is killed with a record in the log. */
function kill(file: string, id: string): void {
  const child = spawnSync(process.execPath, [SOURCE, WRITER, "append-and-die", file, id], { stdio: "inherit" });
  expect(child.signal).toBe("SIGKILL");
}

async function readOnlyTree(context: TestContext): Promise<{ root: string; seal(): Promise<void> } & AsyncDisposable> {
  needs(context, "read-only file system", whyNoMounts());
  const machine = new Machine();
  const root = await machine.tmpfs("readonly", mib(16));
  const seal = async (): Promise<void> => void (await run("mount", "-o", "remount,ro", root));
  return { root, seal, [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose]() };
}

describe("a folder store that can only be read", () => {
  const addressIn = (root: string): string => `${root}/store`;

  test("on a read-only file system", async (context) => {
    await using tree = await readOnlyTree(context);
    const address = addressIn(tree.root);
    const { id, head } = await write(address);
    await tree.seal();
    const before = treeOf(tree.root);
    expect(look(address, id)).toEqual(seen(id, head, ["a", "b"]));
    expect(treeOf(tree.root)).toEqual(before);
  });

  test("of somebody else, in a folder that everybody may write to: read, and nothing is left behind", async (context) => {
    needs(context, "another user", process.getuid?.() === 0 ? null : "needs root");
    using here = place();
    const address = addressIn(here.path);
    const { id, head } = await write(address);
    execFileSync("chmod", ["-R", "a+rX,a-w", here.path]);
    execFileSync("chmod", ["a+w", here.path]);
    const before = modesOf(here.path);
    expect(look(address, id, asNobody)).toEqual(seen(id, head, ["a", "b"]));
    expect(modesOf(here.path)).toEqual(before);
    await using store = await openJournalStore(address);
    await (await store.open(id)).journal.append(note("c"));
  });
});

test("an SQLite store that can only be read is refused, and a copy of it is read, with what is in its log", async (context) => {
  await using tree = await readOnlyTree(context);
  const file = join(tree.root, "store.db");
  const { id } = await write(`sqlite:${file}`);
  kill(file, id);
  expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
  await tree.seal();
  const before = treeOf(tree.root);
  expect(look(`sqlite:${file}`, id)).toMatchObject({ code: "STORE_FORBIDDEN" });
  expect(treeOf(tree.root)).toEqual(before);
  using here = place();
  for (const ending of ["", "-wal"]) cpSync(file + ending, join(here.path, `copy.db${ending}`));
  await using store = await openSqliteStore(join(here.path, "copy.db"));
  expect(textsOf((await store.open(id)).records)).toEqual(["a", "b", "in the log"]);
});

test("the reader of a read-only store goes on in memory where it would make files: searches", async (context) => {
  await using tree = await readOnlyTree(context);
  const url = join(tree.root, "store");
  const write = await openStore(url);
  const session = await write.create({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "count the stars" });
  await turn.append({ role: "assistant", content: "seven stars" });
  await turn.end();
  await write.close();
  rmSync(join(url, "search.sqlite"), { force: true });
  await tree.seal();
  await using store = await openStore(url);
  const hits: string[] = [];
  for await (const hit of store.search("seven")) hits.push(hit.session);
  expect(hits).toEqual([session.id]);
  await expect(store.resume(session.id)).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
});
