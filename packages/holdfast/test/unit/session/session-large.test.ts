import { type JournalRecord, openStore, type Session, type Store } from "holdfast";
import { describe, expect, test } from "vitest";
import { place } from "../../place.ts";
import type { Made } from "../sync/sync-agents.ts";

/** Sixty megabytes take a while on a machine that has much else to do. */
const PATIENCE_MS = 180_000;

/** C28, C38: whatever a session holds, it can be compacted and forked; and what is taken in can be brought along. */

const MB = 1_000_000;
const MIB = 1024 * 1024;
const user = (text: string): Made => ({ role: "user", content: text });
const says = (text: string): Made => ({ role: "assistant", content: text });
const recordsOf = (store: Store, session: { id: string }): Promise<JournalRecord[]> =>
  Array.fromAsync(store.history(session.id));

/** What is large about it, by its first characters and its length: comparing 50 MB of text takes a while. */
const brief = (text: string): string => `${text.slice(0, 20)} ${text.length}`;
const queueOf = (session: Pick<Session<Made>, "queue">): string[] =>
  session.queue.map(
    ({ id, prompt, at, metadata }) => `${id} ${brief(prompt.content)} ${at} ${JSON.stringify(metadata)}`,
  );
const notesOf = (session: Pick<Session<Made>, "attributes">): string[] =>
  Object.entries(session.attributes.notes)
    .map(([name, value]) => `${name} ${brief(String(value))}`)
    .sort();

describe("queue, notes and prompt together are larger than a record", () => {
  /** A turn, four prompts that wait and three notes; `chars`: how large the large ones are. */
  async function begun(store: Store, chars: number): Promise<Session<Made>> {
    const session = await store.create<Made>({ dialect: "openai-chat" });
    const turn = await session.startTurn(user(`prompt ${"p".repeat(chars)}`));
    await turn.append(says("hm"));
    await session.enqueue(user("a small one"), { id: "q0", metadata: { n: 0 } });
    for (const n of [1, 2])
      await session.enqueue(user(`queued ${n} ${"q".repeat(chars)}`), { id: `q${n}`, metadata: { n } });
    await session.enqueue(user("another small one"), { id: "q3" });
    await session.note("small", "s");
    for (const n of [1, 2]) await session.note(`large ${n}`, `${n}${"n".repeat(chars)}`);
    return session;
  }
  const promptOf = (one: Made): string => brief(one.prompt.message.content);

  test("it is compacted and forked", { timeout: PATIENCE_MS }, async () => {
    await using store = await openStore("memory:");
    const session = await begun(store, 14 * MB);
    const [queue, notes] = [queueOf(session), notesOf(session)];
    await session.replace([user("in short")], { reason: "compaction" });
    expect([queueOf(session), notesOf(session)]).toEqual([queue, notes]);
    expect(notesOf(await store.fork<Made>(session.id))).toEqual(notes);
  });

  test("compacted, resumed, undone and forked, all of them live on", async () => {
    using here = place();
    const store = await openStore(here.path, { durability: "process" });
    const session = await begun(store, 2 * MB);
    const [queue, notes] = [queueOf(session), notesOf(session)];
    const prompt = promptOf(session.turn);

    // The prompt is carried; then it is dropped; then everything comes back.
    await session.replace([...session.entries], { reason: "compaction" });
    expect([queueOf(session), notesOf(session), promptOf(session.turn)]).toEqual([queue, notes, prompt]);
    await session.replace([user("in short")], { reason: "compaction" });
    expect([queueOf(session), notesOf(session), promptOf(session.turn)]).toEqual([queue, notes, prompt]);
    const records = await recordsOf(store, session);
    const kindsFrom = (at: number): string[] => records.slice(at).map(({ kind }) => kind);
    const epochs = records.flatMap(({ kind }, at) => (kind === "epoch" ? [at] : []));
    const behind = [...Array(4).fill("queue.put"), ...Array(3).fill("note")];
    expect(kindsFrom(epochs[0]!).slice(0, 11)).toEqual(["epoch", "session", ...behind, "message", "message"]);
    expect(kindsFrom(epochs[1]!)).toEqual(["epoch", "session", "turn.prompt", ...behind, "message"]);
    const checkpoint = JSON.stringify(records[epochs[1]!]);
    expect(checkpoint.length).toBeLessThan(10_000);

    const fork = await store.fork<Made>(session.id);
    expect([queueOf(fork), notesOf(fork)]).toEqual([[], notes]);
    await session.undo();
    expect(session.entries.map(({ message }) => brief(message.content))).toEqual([prompt, "hm 2"]);
    expect([queueOf(session), notesOf(session)]).toEqual([queue, notes]);
    await store.close();

    const again = await openStore(here.path, { durability: "process" });
    const resumed = await again.resume<Made>(session.id);
    expect([queueOf(resumed), notesOf(resumed), promptOf(resumed.interruption)]).toEqual([queue, notes, prompt]);
    await resumed.replace([user("in short")], { reason: "clear" });
    expect((await again.list()).sessions.find(({ id }) => id === session.id)).toMatchObject({ queued: 4 });
    const next = await resumed.startTurn(resumed.queue[1]!);
    expect(promptOf(next)).toContain("queued 1");
    expect(resumed.queue.map(({ id }) => id)).toEqual(["q0", "q2", "q3"]);
    await again.close();
  });

  test("lists show the prompt of a turn that an epoch brought along, wherever it stands", async () => {
    for (const keep of [true, false]) {
      using here = place();
      const store = await openStore(here.path, { durability: "process" });
      const session = await begun(store, 2 * MB);
      await session.replace(keep ? [...session.entries] : [user("in short")], { reason: "compaction" });
      const { title } = (await store.list()).sessions[0]!;
      expect(title.startsWith("prompt ppp")).toBe(true);
      await store.close();
    }
  });
});

describe("what is taken in can be brought along", () => {
  test("a message at the limit is recorded, compacted and forked; one beyond it is refused", {
    timeout: PATIENCE_MS,
  }, async () => {
    await using store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: "openai-chat" });
    const turn = await session.startTurn(user("go"));
    const frame = JSON.stringify(user("")).length;
    const largest = user("x".repeat(62 * MIB - frame));
    await turn.append(largest, { id: "i".repeat(512), metadata: { m: "m".repeat(MIB - 20) }, model: "o".repeat(1024) });
    await session.replace([...session.entries], { reason: "compaction" });
    expect(session.entries.at(-1)!.message.content.length).toBe(largest.content.length);
    const fork = await store.fork<Made>(session.id);
    expect(fork.entries.at(-1)!.message.content.length).toBe(largest.content.length);
    const before = JSON.stringify(session.entries.map(({ id }) => id));
    const beyond = user("x".repeat(62 * MIB - frame + 1));
    const refused = { code: "RECORD_TOO_LARGE", facts: { limitBytes: 62 * MIB, bytes: 62 * MIB + 1 } };
    await expect(turn.append(beyond)).rejects.toMatchObject(refused);
    await expect(session.enqueue(beyond)).rejects.toMatchObject(refused);
    await expect(session.edit([session.entries[0]!.id], [beyond], { reason: "x" })).rejects.toMatchObject(refused);
    await expect(session.replace([beyond], { reason: "clear" })).rejects.toMatchObject(refused);
    await expect(session.note("n", "x".repeat(62 * MIB))).rejects.toMatchObject({ code: "RECORD_TOO_LARGE" });
    await expect(session.sync([...session.messages, beyond])).rejects.toMatchObject(refused);
    await expect(session.patch(session.entries[0]!.id, { m: "m".repeat(MIB) })).rejects.toMatchObject({
      code: "RECORD_TOO_LARGE",
      facts: { limitBytes: MIB },
    });
    expect(JSON.stringify(session.entries.map(({ id }) => id))).toBe(before);
    expect([session.queue, session.attributes.notes]).toEqual([[], {}]);
  });

  test("metadata has its limit with all patches", async () => {
    await using store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: "openai-chat" });
    const turn = await session.startTurn(user("go"));
    await session.patch(turn.prompt.id, { a: "m".repeat(600_000) });
    await expect(session.patch(turn.prompt.id, { b: "m".repeat(600_000) })).rejects.toMatchObject({
      code: "RECORD_TOO_LARGE",
    });
    await session.patch(turn.prompt.id, { a: "m".repeat(700_000) });
    await session.patch(turn.prompt.id, { a: null, b: "m".repeat(900_000) });
    await session.replace([...session.entries], { reason: "compaction" });
    expect(Object.keys(session.entries[0]!.metadata)).toEqual(["b"]);
  });

  test("a result whose text would be too large as a message is told in words, and the session can be compacted", {
    timeout: PATIENCE_MS,
  }, async () => {
    await using store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: "openai-chat" });
    const turn = await session.startTurn(user("go"));
    const call = (id: string): Made => ({ id, type: "function", function: { name: "read", arguments: "{}" } });
    await turn.append({ role: "assistant", content: null, tool_calls: [call("a"), call("b"), call("c")] });
    // In JSON a quotation mark takes two characters, and in JSON that is a text in JSON four.
    await turn.tool("a", () => ({ marks: '"'.repeat(17 * MB) }));
    await turn.tool("b", () => "b".repeat(50 * MB));
    await turn.toolStarted("c");
    await turn.toolEnded("c", { value: 1 }, { role: "tool", tool_call_id: "c", content: "c".repeat(63 * MIB) } as Made);
    const shown = (): string[] => session.messages.slice(2).map(({ content }) => content.slice(0, 60));
    const before = shown();
    expect(before[0]).toMatch(/too large to be recorded: \d+ bytes/);
    expect(before[1]).toBe("b".repeat(60));
    expect(before[2]).toMatch(/too large to be recorded: \d+ bytes/);
    await session.replace([...session.entries], { reason: "compaction" });
    expect(shown()).toEqual(before);
  });

  test("how a turn ended is told in brief, and not cut inside a character", async () => {
    await using store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: "openai-chat" });
    const turn = await session.startTurn(user("go"));
    await turn.fail(new Error(`x${"😀".repeat(600_000)}`));
    const { how } = session.interruption!;
    const words = how.kind === "failed" ? how.error : "";
    expect(words.length).toBeLessThan(MIB + 10);
    expect(words.isWellFormed()).toBe(true);
    expect(words.endsWith("😀…")).toBe(true);
  });

  test("what was streamed is carried, and what a tool without a call was given, if it is small", async () => {
    await using store = await openStore("memory:");
    const session = await store.create<Made>({ dialect: "openai-chat", draftMs: 1 });
    const turn = await session.startTurn(user("go"));
    const { draft } = turn.request();
    draft.push({ part: 0, text: "the beginning" });
    await turn.toolStarted("early", { name: "read", input: { text: "y".repeat(9 * MIB) } });
    await session.flush();
    await session.replace([...session.entries], { reason: "compaction" });
    await session.close();
    const { interruption } = await store.resume<Made>(session.id);
    expect(interruption?.draft).toMatchObject({ text: "the beginning", gap: false });
    expect(interruption?.calls).toMatchObject([{ id: "early", state: "outcome-unknown" }]);
  });
});
