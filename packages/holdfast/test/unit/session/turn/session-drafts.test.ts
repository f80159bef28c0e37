import { cpSync } from "node:fs";
import { join } from "node:path";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, type Interruption, openStore, type Session, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { afterEach, describe, expect, test } from "vitest";
import { endsNow, type Guarded } from "../../../../src/session/guarded.ts";
import { place } from "../../../place.ts";
import { FailingDisk } from "../session-failures-disk.ts";

type M = AnthropicMessage;
const user = (text: string): M => ({ role: "user", content: text });
const says = (text: string): M => ({ role: "assistant", content: text });

const opened: Disposable[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

async function begin(
  options: Parameters<typeof openStore>[1] = {},
  draftChars = 8192,
): Promise<{ store: Store; session: Session<M>; path: string }> {
  const here = place();
  opened.push(here);
  const store = await openStore(here.path, options);
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 5, draftChars });
  return { store, session, path: here.path };
}

/**
 * What another process would find if this one were killed now: a copy of the journal as it is on disk, without its
 * lease (S13).
 */
async function found(path: string, id: string): Promise<Interruption<M> | null> {
  using copy = place();
  cpSync(join(path, "sessions"), join(copy.path, "sessions"), { recursive: true });
  await using store = await openStore(copy.path);
  return (await store.read<M>(id)).interruption;
}

async function drafts(session: Session<M>, store: Store): Promise<Record<string, unknown>[]> {
  await session.flush();
  const records = await Array.fromAsync(store.history(session.id));
  return records.filter(({ kind }) => kind === "draft");
}

test("R10: deltas are coalesced, by part, and counted", async () => {
  const { session, store } = await begin({}, 1 << 20);
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  for (const text of ["a", "b", "c"]) draft.push({ text });
  draft.push({ part: 1, call: { id: "c1", name: "work" } });
  draft.push({ part: 2, call: { id: "c2", name: "work" } });
  draft.push({ part: 1, input: '{"a"' });
  draft.push({ part: 2, input: "{" });
  draft.push({ part: 1, input: ":1}" });
  draft.push(null as never);
  const written = await drafts(session, store);
  expect(written).toMatchObject([
    {
      id: draft.id,
      n: 0,
      turn: 1,
      parts: [
        { part: 0, text: "abc" },
        { part: 1, call: { id: "c1", name: "work" }, input: '{"a":1}' },
        { part: 2, call: { id: "c2", name: "work" }, input: "{" },
      ],
    },
  ]);
  await store.close();
});

test("R10: not more than draftChars wait", async () => {
  const { session, store } = await begin({}, 10);
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  for (let i = 0; i < 4; i++) draft.push({ text: "12345678901" });
  expect((await drafts(session, store)).map(({ n }) => n)).toEqual([0, 1, 2, 3]);
  await store.close();
});

test("C12: stop in the middle of text: the text stays, marked incomplete, also when a tool call had begun after it", async () => {
  const { session, store } = await begin();
  const turn = await session.startTurn(user("tell me"));
  const { draft } = turn.request();
  draft.push({ reasoning: "hm" });
  draft.push({ part: 1, text: "Once upon" });
  draft.push({ part: 2, call: { id: "c", name: "work" }, input: '{"half' });
  await turn.abort({ by: "user" });
  expect(session.interruption?.draft).toEqual({
    id: draft.id,
    text: "Once upon",
    reasoning: "hm",
    calls: [{ id: "c", name: "work", input: '{"half' }],
    gap: false,
  });
  await session.startTurn(user("stop that"));
  expect(session.entries.find(({ id }) => id === draft.id)).toMatchObject({ incomplete: true, synthetic: "draft" });
  const shown = JSON.stringify(session.messages);
  expect(shown).toContain("Once upon");
  expect(shown).not.toContain("half");
  expect(shown).not.toContain("hm");
  expect(validateAnthropic(session.messages as never)).toEqual([]);
  await store.close();
});

test("with resumeTurn the request is the one that died, or keeps the words on demand", async () => {
  const { session, store } = await begin();
  const turn = await session.startTurn(user("tell me"));
  const { messages: request, draft } = turn.request();
  draft.push({ text: "Once upon" });
  await turn.fail(new Error("network"));
  const again = await session.resumeTurn();
  const retried = again.request();
  expect(retried.messages).toEqual(request);
  retried.draft.push({ text: "Twice upon" });
  await again.fail(new Error("network"));
  await session.resumeTurn({ draft: "keep" });
  expect(session.messages.slice(0, request.length)).toEqual(request);
  expect(JSON.stringify(session.messages)).toContain("Twice upon");
  expect(session.messages.at(-1)).toMatchObject({ role: "user" });
  await store.close();
});

test("C36: a stream that failed and was retried: the failed attempt's words never come back", async () => {
  const { session, store, path } = await begin();
  const turn = await session.startTurn(user("tell me"));
  const { draft: first } = turn.request();
  first.push({ text: "the wrong words" });
  await session.flush();
  const { draft: second } = turn.request();
  first.push({ text: " and more of them" });
  await expect(first.commit(says("the wrong words"))).rejects.toMatchObject({ code: "DRAFT_DISCARDED" });
  await session.flush();
  expect((await found(path, session.id))?.draft ?? null).toBeNull();
  second.push({ text: "the right" });
  await session.flush();
  await turn.abort({ by: "user" });
  expect(session.interruption?.draft?.text).toBe("the right");
  await store.close();
});

test("an answer that is appended takes the place of the draft", async () => {
  const { session, store } = await begin();
  const turn = await session.startTurn(user("tell me"));
  const { draft } = turn.request();
  draft.push({ text: "half" });
  await turn.append(says("whole"));
  draft.push({ text: " a word" });
  await turn.abort({ by: "user" });
  expect(session.interruption).toMatchObject({ draft: null, answered: true });
  await store.close();
});

test("a discarded draft is gone, and commit gives the message the draft's id", async () => {
  const { session, store } = await begin();
  const turn = await session.startTurn(user("tell me"));
  const { draft } = turn.request();
  draft.push({ text: "x" });
  await session.flush();
  await draft.discard("changed my mind");
  const { draft: next } = turn.request();
  expect(await next.commit(says("hello"))).toMatchObject({ id: next.id, ids: [next.id] });
  expect(session.entries.at(-1)?.id).toBe(next.id);
  await turn.end();
  await store.close();
});

describe("the beginning of a secret is never written in the clear, whatever flushes the stream in the middle of it", () => {
  const secret = `ghp_${"a1B2".repeat(9)}`;
  const ways: [name: string, flush: (session: Session<M>) => unknown][] = [
    ["flush", (session) => session.flush()],
    ["flushSync", (session) => session.flushSync()],
    ["the guard", (session) => (session as unknown as Guarded)[endsNow]({ signal: "SIGTERM" })],
  ];
  test.each(ways)("%s", async (_name, flush) => {
    const { session, store } = await begin({ redact: "credentials" });
    const turn = await session.startTurn(user("x"));
    const { draft } = turn.request();
    draft.push({ text: `the key is ${secret.slice(0, 12)}` });
    await flush(session);
    expect(JSON.stringify(await drafts(session, store))).not.toContain("a1B2");
    draft.push({ text: `${secret.slice(12)}, and a ghp` });
    await flush(session);
    draft.push({ text: "ost wrote it." });
    await turn.abort({ by: "user" });
    expect(session.interruption!.draft!.text).toBe("the key is [redacted:github], and a ghpost wrote it.");
    expect(JSON.stringify(await drafts(session, store))).not.toContain("a1B2");
    await store.close();
  });

  test("a turn that is aborted in the middle of it", async () => {
    const { session, store } = await begin({ redact: "credentials" });
    const turn = await session.startTurn(user("x"));
    turn.request().draft.push({ text: `the key is ${secret.slice(0, 12)}` });
    await turn.abort({ by: "user" });
    expect(session.interruption!.draft!.text).toBe("the key is [redacted:cut-off]");
    await store.close();
  });
});

test("redaction holds back what may be the beginning of a secret", async () => {
  const { session, store } = await begin({ redact: "credentials" });
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  const secret = `ghp_${"a1B2".repeat(9)}`;
  draft.push({ text: `token ${secret.slice(0, 12)}` });
  draft.push({ text: `${secret.slice(12)} there` });
  await turn.abort({ by: "user" });
  const { text } = session.interruption!.draft!;
  expect(text).toContain("[redacted:github]");
  expect(text).toContain("there");
  expect(JSON.stringify(await drafts(session, store))).not.toContain(secret.slice(0, 12));
  await store.close();
});

test("P8: what is pushed while a write fails comes behind what was not written: text, and calls with their names", async () => {
  const here = place();
  opened.push(here);
  const disk = new FailingDisk("write");
  const store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 60_000, draftChars: 20 });
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  disk.countdown = 1;
  // Reaches the limit: it is handed over, and refused.
  draft.push({ text: "twenty characters of" });
  expect(disk.failed).toBe(1);
  draft.push({ text: " it" });
  draft.push({ part: 1, call: { id: "c1", name: "work" } });
  draft.push({ part: 1, input: "{" });
  draft.push({ part: 2, reasoning: "hm" });
  // It is known now that it was refused.
  await new Promise(setImmediate);
  await session.flush();
  await store.close();
  const store2 = await openStore(here.path);
  expect((await store2.read<M>(session.id)).interruption?.draft).toEqual({
    id: draft.id,
    text: "twenty characters of it",
    reasoning: "hm",
    calls: [{ id: "c1", name: "work", input: "{" }],
    gap: false,
  });
  await store2.close();
});

test("P8: a flush that finds a piece missing says so, however it went missing", async () => {
  const here = place();
  opened.push(here);
  const disk = new FailingDisk("write");
  await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  await using session = await store.create<M>({ dialect: "anthropic", draftMs: 60_000, draftChars: 20 });
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  disk.countdown = 1;
  draft.push({ text: "twenty characters of" });
  // Still on its way to being refused. Nothing else has been pushed: it can be written again.
  await expect(session.flush()).rejects.toMatchObject({ code: "STORE_FULL" });
  await session.flush();
  disk.countdown = 1;
  draft.push({ text: " twenty more of them" });
  // Handed over before that is known: what comes after the gap does not count.
  draft.push({ text: " and twenty at last." });
  for (let n = 0; n < 2; n++) await expect(session.flush()).rejects.toMatchObject({ code: "STORE_FULL" });
  expect(() => session.flushSync()).toThrow(expect.objectContaining({ code: "STORE_FULL" }));
  expect(await found(here.path, session.id)).toMatchObject({ draft: { text: "twenty characters of", gap: true } });
  // The whole answer is recorded, so nothing is missing.
  await draft.commit(says("twenty characters of twenty more of them and twenty at last."));
  await session.flush();
});

test("P8: a piece that is too large for a record: the signal and every flush say so", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  draft.push({ text: "x".repeat(65 * 1024 * 1024) });
  await expect(session.flush()).rejects.toMatchObject({ code: "RECORD_TOO_LARGE" });
  expect(turn.signal.reason).toMatchObject({ code: "RECORD_TOO_LARGE" });
  draft.push({ text: "small" });
  await expect(session.flush()).rejects.toMatchObject({ code: "RECORD_TOO_LARGE" });
  expect(() => session.flushSync()).toThrow(expect.objectContaining({ code: "RECORD_TOO_LARGE" }));
  // Another draft begins without it.
  turn.request().draft.push({ text: "again" });
  await session.flush();
});

test("P8: a flush during a commit that is refused writes the words that the commit would have replaced", async () => {
  const here = place();
  opened.push(here);
  const disk = new FailingDisk("write");
  await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  await using session = await store.create<M>({ dialect: "anthropic", draftMs: 60_000 });
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  draft.push({ text: "words" });
  disk.countdown = 1;
  const commit = draft.commit(says("words and more"));
  const flushed = session.flush();
  await expect(commit).rejects.toMatchObject({ code: "STORE_FULL" });
  await flushed;
  expect(await found(here.path, session.id)).toMatchObject({ draft: { text: "words", gap: false } });
  // A commit that succeeds leaves nothing to write.
  draft.push({ text: " again" });
  const again = draft.commit(says("words and more"));
  await session.flush();
  await again;
  expect(await found(here.path, session.id)).toMatchObject({ draft: null });
});

test("P8: words whose commit was refused are written by themselves, and none are after a commit", async () => {
  const here = place();
  opened.push(here);
  const disk = new FailingDisk("write");
  await using store = await openStoreWith((options) => openFolderStore(here.path, { ...options, disk: disk.disk }));
  await using session = await store.create<M>({ dialect: "anthropic", draftMs: 1 });
  const turn = await session.startTurn(user("x"));
  const { draft } = turn.request();
  draft.push({ text: "some" });
  await expect.poll(() => found(here.path, session.id)).toMatchObject({ draft: { text: "some" } });
  draft.push({ text: " words" });
  disk.countdown = 1;
  await expect(draft.commit(says("words and more"))).rejects.toMatchObject({ code: "STORE_FULL" });
  await expect.poll(() => found(here.path, session.id)).toMatchObject({ draft: { text: "some words" } });
  await draft.commit(says("words and more"));
  draft.push({ text: " too late" });
  await session.flush();
  const records = await Array.fromAsync(store.history(session.id));
  expect(records.at(-1)).toMatchObject({ kind: "message" });
});
