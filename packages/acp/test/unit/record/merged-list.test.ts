import { openStore, type Store } from "holdfast";
import { expect, test } from "vitest";
import { Library } from "../../../src/record/library.ts";
import { MergedList } from "../../../src/record/merged-list.ts";
import { AGENT_SESSION } from "../../../src/record/recorded-session.ts";

const libraryOf = (store: Store): Library => new Library(store, ["agent"]);

/** Every page: the id and the title of each session. */
async function listOf(library: Library, ...pages: string[][]): Promise<(string | null)[][]> {
  const list = new MergedList(library);
  const ask = async ({ cursor }: { cursor?: unknown }): Promise<object> => {
    const page = cursor === undefined ? 0 : Number(cursor);
    const sessions = pages[page]!.map((sessionId) => ({ sessionId, cwd: "/work", title: `agent's ${sessionId}` }));
    return { sessions, ...(page + 1 < pages.length ? { nextCursor: String(page + 1) } : {}) };
  };
  const rows: (string | null)[][] = [];
  for (let cursor: unknown; ; ) {
    const { sessions, nextCursor } = await list.page(cursor === undefined ? {} : { cursor }, ask);
    for (const { sessionId, title } of sessions as { sessionId: string; title: string | null }[])
      rows.push([sessionId, title]);
    if (nextCursor === undefined) return rows;
    cursor = nextCursor;
  }
}

test("a session that was moved is listed once, while it is open and after a restart", async () => {
  await using store = await openStore("memory:");
  const library = libraryOf(store);
  await (await library.create("old", "/work")).movedTo("new");
  await library.create("other", "/work");
  const expected = [
    ["old", "agent's new"],
    ["unknown", "agent's unknown"],
    ["other", null],
  ];
  for (const pages of [[["old", "new", "unknown"]], [["new"], ["old", "unknown"]]]) {
    expect(await listOf(library, ...pages)).toEqual(expected);
  }
  await library.closeAll();
  for (const pages of [[["old", "new", "unknown"]], [["old"], ["new", "unknown"]]]) {
    expect(await listOf(libraryOf(store), ...pages)).toEqual(expected);
  }
  // The agent has dropped the new one: ours is listed, and what is left over at the agent is not.
  expect(await listOf(libraryOf(store), ["old"])).toEqual([
    ["other", null],
    ["old", null],
  ]);
});

test("sessions to which the agent gave the same id are listed once each", async () => {
  await using store = await openStore("memory:");
  const library = libraryOf(store);
  await library.add("s1", "/work", null);
  const second = await library.add("s1", "/work", null);
  await library.closeAll();
  const expected = [
    [second.id, "agent's s1"],
    ["s1", null],
  ];
  expect(await listOf(libraryOf(store), ["s1"])).toEqual(expected);
  await library.reopen("s1");
  await library.reopen(second.id);
  expect(await listOf(library, ["s1"])).toEqual(expected);
  await library.closeAll();
});

test("a fork of a session that was moved is not taken for it", async () => {
  await using store = await openStore("memory:");
  const library = libraryOf(store);
  const source = await library.create("old", "/work");
  await source.movedTo("new");
  await library.fork(source, "fork", "/work");
  await library.closeAll();
  expect(await listOf(libraryOf(store), ["fork", "new"])).toEqual([
    ["fork", "agent's fork"],
    ["old", "agent's new"],
  ]);
});

test("a session that was moved by an earlier version is listed once, after it was opened", async () => {
  await using store = await openStore("memory:");
  const library = libraryOf(store);
  const { journal } = await library.create("old", "/work");
  await library.closeAll();
  const recorder = await store.record(journal);
  await recorder.note(AGENT_SESSION, { session: "old", agent: "new" });
  await recorder.close();
  const later = libraryOf(store);
  await later.reopen("old");
  await later.closeAll();
  expect(await listOf(libraryOf(store), ["old", "new"])).toEqual([["old", "agent's new"]]);
});
