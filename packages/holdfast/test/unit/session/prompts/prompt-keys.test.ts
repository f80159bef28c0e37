import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AnthropicMessage, openStore, type Session } from "holdfast";
import { afterAll, expect, test } from "vitest";
import { PromptKeys } from "../../../../src/conversation/prompt-keys.ts";
import { keyDigestOf } from "../../../../src/session/prompts/prompt-key.ts";

type Message = AnthropicMessage;
const folder = mkdtempSync(join(tmpdir(), "holdfast-prompt-keys-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const prompt = (content: string): Message => ({ role: "user", content });
const answer = (content: string): Message => ({ role: "assistant", content });

async function answered(session: Session<Message>, key: string): Promise<void> {
  const turn = await session.startTurn(prompt(key), { key });
  await turn.append(answer(`answer to ${key}`), { end: true });
}

test.each(["memory:", `${folder}/store`, `sqlite:${folder}/store.db`])(
  "a key stands for one turn, in every epoch and over restarts: %s",
  async (url) => {
    await using store = await openStore(url, { durability: "process" });
    let session = await store.create({ dialect: "anthropic" });
    const { id } = session;
    const keys = Array.from({ length: 300 }, (_, index) => `key ${index}`);
    for (const [index, key] of keys.entries()) {
      await answered(session, key);
      if (index % 40 === 39) await session.replace([prompt("a summary")], { reason: "compaction" });
      if (index % 90 === 89) {
        await session.close();
        session = await store.resume(id, { dialect: "anthropic" });
      }
    }
    await session.replace([], { reason: "clear" });
    await session.undo();
    const head = (await Array.fromAsync(store.history(id))).length;
    for (const [index, key] of keys.entries()) {
      const known = { code: "PROMPT_KNOWN", facts: { session: id, key, turn: index + 1 } };
      await expect(session.startTurn(prompt(key), { key })).rejects.toMatchObject(known);
      await expect(session.enqueue(prompt(key), { key })).rejects.toMatchObject(known);
      await expect(session.startTurn(prompt("another"), { key })).rejects.toMatchObject({ code: "KEY_TAKEN" });
    }
    for (const index of [0, 150, 299]) {
      const found = await session.answer(keys[index]!);
      expect(found).toMatchObject({ turn: index + 1, outcome: "completed" });
      const said = [prompt(keys[index]!), answer(`answer to ${keys[index]}`)];
      expect(found!.entries.map(({ message }) => message)).toEqual(said);
      expect(await store.answer(id, keys[index]!, { dialect: "anthropic" })).toEqual(found);
    }
    expect(await session.answer("nobody")).toBe(null);
    expect((await Array.fromAsync(store.history(id))).length).toBe(head);
    expect(session.turn).toBe(null);
    await session.close();
  },
);

test("callers at once with one key get one turn", async () => {
  for (const url of ["memory:", `${folder}/at-once`]) {
    await using store = await openStore(url, { durability: "process" });
    const session = await store.create({ dialect: "anthropic" });
    const turns = await Promise.all(
      Array.from({ length: 10 }, () => session.startTurn(prompt("go"), { key: "k", metadata: { by: "test" } })),
    );
    expect(new Set(turns).size).toBe(1);
    const other = session.startTurn(prompt("other"), { key: "other" });
    await expect(other).rejects.toMatchObject({ code: "TURN_OPEN" });
    const waiting = [session.answer("k"), store.answer(session.id, "k", { dialect: "anthropic" })];
    await turns[0]!.append(answer("done"), { end: true });
    for (const found of await Promise.all(waiting)) expect(found).toMatchObject({ turn: 1, outcome: "completed" });
    await session.close();
  }
});

test("a turn that was cut off is resumed; one that was stopped, failed or waits for a person is not touched", async () => {
  await using store = await openStore("memory:");
  let session = await store.create({ dialect: "anthropic" });
  const { id } = session;
  await session.startTurn(prompt("go"), { key: "k" });
  const reopen = async (): Promise<void> => {
    await session.close();
    session = await store.resume(id, { dialect: "anthropic" });
  };
  await reopen();
  const resumed = await session.startTurn(prompt("go"), { key: "k" });
  expect(resumed.number).toBe(1);
  expect(session.entries.filter(({ message }) => message.role === "user")).toHaveLength(1);
  const calls = [{ type: "tool_use" as const, id: "c", name: "pay", input: {} }];
  await resumed.append({ role: "assistant", content: calls });
  await resumed.suspend({ reason: "permission", calls: ["c"] });
  await reopen();
  const known = { code: "PROMPT_KNOWN", facts: { turn: 1 } };
  await expect(session.startTurn(prompt("go"), { key: "k" })).rejects.toMatchObject(known);
  expect(session.state).toBe("waiting");
  const tired = session.answer("k", { signal: AbortSignal.timeout(20) });
  await expect(tired).rejects.toMatchObject({ name: "TimeoutError" });
  const left = session.answer("k");
  await Promise.all([expect(left).rejects.toMatchObject({ code: "SESSION_CLOSED" }), reopen()]);
  const turn = await session.resumeTurn();
  await turn.abort({ by: "user", reason: "no" });
  await expect(session.startTurn(prompt("go"), { key: "k" })).rejects.toMatchObject(known);
  expect(await session.answer("k")).toMatchObject({ outcome: "aborted", by: "user", reason: "no" });
  await (await session.resumeTurn()).fail(new Error("no model"));
  expect(await session.answer("k")).toMatchObject({ outcome: "failed", error: "no model" });
  await answered(session, "next");
  expect(await session.answer("k")).toMatchObject({ turn: 1 });
  expect(await session.answer("next")).toMatchObject({ turn: 2, outcome: "completed" });
  await session.close();
});

test("a key goes with its prompt through the queue, an epoch, and a turn that it steers", async () => {
  await using store = await openStore("memory:");
  let session = await store.create({ dialect: "anthropic" });
  const { id } = session;
  const [first, again] = [
    await session.enqueue(prompt("one"), { key: "1" }),
    await session.enqueue(prompt("one"), { key: "1" }),
  ];
  expect(again).toEqual(first);
  await expect(session.enqueue(prompt("two"), { key: "1" })).rejects.toMatchObject({ code: "KEY_TAKEN" });
  await session.enqueue(prompt("two"), { key: "2" });
  await session.enqueue(prompt("three"), { key: "3" });
  await session.replace([], { reason: "clear" });
  await session.close();
  session = await store.resume(id, { dialect: "anthropic" });
  const waiting = session.answer("2");
  const turn = await session.startTurn(prompt("one"), { key: "1" });
  expect(session.queue.map(({ prompt }) => prompt.content)).toEqual(["two", "three"]);
  await turn.append(session.queue[0]!);
  await session.dequeue(session.queue[0]!.id);
  expect(await session.answer("3")).toBe(null);
  await turn.append(answer("both"), { end: true });
  expect(await waiting).toMatchObject({ turn: 1, outcome: "completed" });
  expect(await session.answer("1")).toEqual(await waiting);
  await expect(session.enqueue(prompt("two"), { key: "2" })).rejects.toMatchObject({ code: "PROMPT_KNOWN" });
  // It was withdrawn, so nobody has answered it.
  const third = await session.startTurn(prompt("three"), { key: "3" });
  expect(third.number).toBe(2);
  const queued = session.queue[0] ?? (await session.enqueue(prompt("four")));
  await third.end();
  await expect(session.startTurn(queued, { key: "4" })).rejects.toMatchObject({ code: "RECORD_INVALID" });
  await session.close();
});

test("an answer is awaited while another process works on it, and is that of the turn's end", async () => {
  const url = `${folder}/two`;
  await using here = await openStore(url, { durability: "process" });
  await using there = await openStore(url, { durability: "process" });
  const session = await there.create({ dialect: "anthropic" });
  const turn = await session.startTurn(prompt("go"), { key: "k" });
  const waiting = here.answer(session.id, "k", { dialect: "anthropic" });
  await turn.append(answer("one"));
  await session.replace([prompt("what was said"), ...session.entries.slice(-1)], { reason: "compaction" });
  await turn.append(answer("two"), { end: true });
  const found = await waiting;
  expect(found!.entries.map(({ message }) => message.content)).toEqual(["what was said", "one", "two"]);
  await session.replace([], { reason: "clear" });
  await answered(session, "next");
  expect(await here.answer(session.id, "k", { dialect: "anthropic" })).toEqual(found);
  const forked = await here.fork(session.id, { dialect: "anthropic" });
  expect(await forked.answer("k")).toBe(null);
  const pending = here.answer(forked.id, "later", { dialect: "anthropic" });
  expect(await pending).toBe(null);
  await forked.close();
  const queued = await session.enqueue(prompt("later"), { key: "later" });
  const gone = here.answer(session.id, "later", { dialect: "anthropic" });
  await session.dequeue(queued.id);
  expect(await gone).toBe(null);
  await session.enqueue(prompt("for ever"), { key: "for ever" });
  const deleted = here.answer(session.id, "for ever", { dialect: "anthropic" });
  await session.close();
  await there.delete(session.id);
  await expect(deleted).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});

test.each(["turn", "queue"])(
  "an epoch that begins while an answer is awaited: the key of a %s does not get lost",
  async (where) => {
    await using store = await openStore("memory:");
    await using session = await store.create<Message>({ dialect: "anthropic" });
    await answered(session, "before");
    const turn = await session.startTurn(prompt("go"), where === "turn" ? { key: "k" } : {});
    if (where === "queue") await session.enqueue(prompt("later"), { key: "k" });
    const waiting = session.answer("k");
    // Until it follows the journal, and again until it has read the epoch.
    for (let ticks = 0; ticks < 20; ticks++) await new Promise(setImmediate);
    await session.replace(session.entries.slice(-1), { reason: "compaction" });
    for (let ticks = 0; ticks < 20; ticks++) await new Promise(setImmediate);
    await turn.append(answer("done"), { end: true });
    if (where === "queue") {
      const next = await session.startTurn(session.queue[0]!);
      await next.append(answer("done"), { end: true });
    }
    expect(await waiting).toMatchObject({ turn: where === "turn" ? 2 : 3, outcome: "completed" });
  },
);

test("keys are texts, and the order of a prompt's members does not matter", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  for (const key of ["", "x".repeat(300), 7 as never, "\ud800", null as never]) {
    await expect(session.startTurn(prompt("go"), { key })).rejects.toMatchObject({ code: "RECORD_INVALID" });
    await expect(session.enqueue(prompt("go"), { key })).rejects.toMatchObject({ code: "RECORD_INVALID" });
    await expect(session.answer(key)).rejects.toMatchObject({ code: "RECORD_INVALID" });
  }
  const turn = await session.startTurn({ role: "user", content: "go" }, { key: "k" });
  expect(await session.startTurn({ content: "go", role: "user" }, { key: "k" })).toBe(turn);
});

test("100,000 keys take a few megabytes of an epoch, in records of a bounded size", () => {
  const keys = new PromptKeys();
  const name = (n: number): string => keyDigestOf(`key number ${n}`);
  for (let n = 1; n <= 100_000; n++) keys.start({ promptKey: name(n), promptDigest: name(-n) }, n);
  const carried = keys.saved();
  expect(carried).toHaveLength(10);
  const bytes = carried.map((record) => JSON.stringify(record).length);
  expect(Math.max(...bytes)).toBeLessThan(600_000);
  const again = new PromptKeys();
  for (const record of carried) again.carry(record);
  for (let n = 1; n <= 100_000; n++) expect(again.find(name(n))).toEqual({ digest: name(-n), turn: n });
});
