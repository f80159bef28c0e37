import { type ModelMessage, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import type { Draft, Session, Store, Turn } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test, vi } from "vitest";
import { type Followed, followAnswer } from "../../../../src/ai-sdk/chat/follow.ts";

/** The answer that another server makes, as a page gets it. */

class Elsewhere implements AsyncDisposable {
  readonly #stores: Store[] = [];
  readonly #memory = new Memory();
  readonly chunks: UIMessageChunk[] = [];
  session!: Session<ModelMessage>;
  turn!: Turn<ModelMessage>;
  draft!: Draft<ModelMessage>;
  /** The follower's. */
  store!: Store;

  async begin(): Promise<this> {
    const open = (): Promise<Store> =>
      openStoreWith((options) => openMemoryStore({ ...options, memory: this.#memory }), { recordsToolStarts: true });
    const here = await open();
    this.store = await open();
    this.#stores.push(here, this.store);
    this.session = await here.create<ModelMessage>({ dialect: "ai-sdk" });
    this.turn = await this.session.startTurn({ role: "user", content: "Count." });
    this.draft = this.turn.request().draft;
    return this;
  }

  async follow(more: Partial<Followed> = {}): Promise<ReturnType<typeof followAnswer>> {
    const first = await this.store.read<ModelMessage>(this.session.id);
    return followAnswer(first, { store: this.store, session: this.session.id, options: {}, onError: String, ...more });
  }

  /** What the follower gets when this was streamed. */
  async push(
    source: ReturnType<typeof followAnswer>,
    ...pieces: Parameters<typeof this.draft.push>
  ): Promise<string[]> {
    for (const piece of pieces) this.draft.push(piece);
    await this.session.flush();
    return this.take(source);
  }

  async take(source: ReturnType<typeof followAnswer>): Promise<string[]> {
    const found = ((await source.next()) ?? []).map(({ chunk }) => chunk);
    this.chunks.push(...found);
    return found.map(({ type }) => type);
  }

  /** What the page shows by now. */
  async shown(): Promise<string[]> {
    let last: UIMessage | undefined;
    const stream = ReadableStream.from(this.chunks.filter(({ type }) => type !== "error"));
    for await (const message of readUIMessageStream({ stream })) last = message;
    return (last?.parts ?? []).map((part) => {
      if (part.type === "text" || part.type === "reasoning") return `${part.type} ${part.text}`;
      return "state" in part ? `${part.type} ${part.state} ${JSON.stringify(part.input)}` : part.type;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
  }
}

test("words come as they are recorded, without reading the conversation again, and the answer ends", async () => {
  await using other = await new Elsewhere().begin();
  const follow = vi.spyOn(other.store, "follow");
  const source = await other.follow();
  const read = vi.spyOn(other.store, "read");
  expect(await other.take(source)).toEqual(["start"]);
  expect(await other.push(source, { part: 1, reasoning: "Hm" })).toEqual([
    "start-step",
    "reasoning-start",
    "reasoning-delta",
  ]);
  expect(await other.push(source, { part: 1, reasoning: "." })).toEqual(["reasoning-delta"]);
  expect(await other.push(source, { text: "One " })).toEqual(["text-start", "text-delta"]);
  expect(await other.push(source, { text: "two." })).toEqual(["text-delta"]);
  expect(await other.shown()).toEqual(["step-start", "reasoning Hm.", "text One two."]);
  expect(read).not.toHaveBeenCalled();
  await other.draft.commit({
    role: "assistant",
    content: [
      { type: "reasoning", text: "Hm." },
      { type: "text", text: "One two." },
    ],
  });
  await other.take(source);
  await other.turn.end();
  while (other.chunks.at(-1)?.type !== "finish") await other.take(source);
  expect(await other.shown()).toEqual(["step-start", "reasoning Hm.", "text One two."]);
  expect(await source.next()).toBe(null);
  const left = follow.mock.calls.filter(([, , options]) => !options!.signal!.aborted);
  expect([follow.mock.calls.length > 1, left], "nobody follows the journal any more").toEqual([true, []]);
});

test("the journal is followed once at a time, however often it is read again", async () => {
  await using other = await new Elsewhere().begin();
  const follow = vi.spyOn(other.store, "follow");
  const source = await other.follow();
  await other.take(source);
  await other.draft.commit({ role: "assistant", content: "One." });
  await other.take(source);
  const { draft } = other.turn.request();
  await draft.commit({ role: "assistant", content: "Two." });
  await other.take(source);
  expect(follow.mock.calls.filter(([, , options]) => !options!.signal!.aborted)).toEqual([]);
  source.cancel();
});

test("the input of a call comes in its pieces; those of calls side by side come to their own", async () => {
  await using other = await new Elsewhere().begin();
  const source = await other.follow();
  const read = vi.spyOn(other.store, "read");
  await other.take(source);
  expect(await other.push(source, { part: 0, call: { id: "a", name: "look" } })).toContain("tool-input-start");
  expect(await other.push(source, { part: 0, input: '{"at":' })).toEqual(["tool-input-delta"]);
  expect(await other.push(source, { part: 0, input: '"A"' })).toEqual(["tool-input-delta"]);
  expect(read, "one call: its pieces are added as they come").not.toHaveBeenCalled();
  expect(await other.push(source, { part: 1, call: { id: "b", name: "look" } })).toEqual(["tool-input-start"]);
  await other.push(source, { part: 1, input: '{"at":"B"' });
  await other.push(source, { part: 0, input: "}" });
  await other.push(source, { part: 1, input: "}" });
  const inputs: Record<string, string> = {};
  for (const chunk of other.chunks)
    if (chunk.type === "tool-input-delta")
      inputs[chunk.toolCallId] = (inputs[chunk.toolCallId] ?? "") + chunk.inputTextDelta;
  expect(inputs).toEqual({ a: '{"at":"A"}', b: '{"at":"B"}' });
  source.cancel();
});

test("an answer that is begun again is shown from its beginning, and nothing of the first try stays", async () => {
  await using other = await new Elsewhere().begin();
  const source = await other.follow();
  await other.take(source);
  await other.push(source, { text: "One " });
  other.draft = other.draft.restart();
  other.draft.push({ text: "Another." });
  await other.session.flush();
  while (!(await other.shown()).includes("text Another.")) await other.take(source);
  expect(await other.shown()).toEqual(["step-start", "text Another."]);
  await other.draft.discard("it was bad");
  while (!(await other.shown()).every((part) => !part.startsWith("text"))) await other.take(source);
  source.cancel();
  expect(await source.next()).toBe(null);
});

test("who comes late gets what was streamed before; a page gets what it lacks", async () => {
  await using other = await new Elsewhere().begin();
  other.draft.push({ text: "One " });
  await other.session.flush();
  const late = await other.follow();
  expect(await other.take(late)).toEqual(["start", "start-step", "text-start", "text-delta"]);
  await other.push(late, { text: "two." });
  expect(await other.shown()).toEqual(["step-start", "text One two."]);
  late.cancel();
  const call = { type: "tool-call" as const, toolCallId: "a", toolName: "look", input: {} };
  await other.draft.commit({ role: "assistant", content: [{ type: "text", text: "One two." }, call] });
  const shown: UIMessage["parts"] = [
    { type: "step-start" },
    { type: "text", text: "One two.", state: "done" },
    { type: "tool-look", toolCallId: "a", state: "input-available", input: {} } as never,
  ];
  const again = await other.follow({ shown });
  expect(await other.take(again), "it has the call").toEqual(["start"]);
  await other.turn.toolStarted("a");
  await other.turn.toolEnded("a", { value: "Seen." });
  expect(await other.take(again)).toEqual(["tool-output-available"]);
  again.cancel();
});

test("a store that cannot be read ends the stream with an error, unless nobody reads it any more", async () => {
  await using other = await new Elsewhere().begin();
  const source = await other.follow();
  await other.take(source);
  vi.spyOn(other.store, "read").mockRejectedValue(new Error("the disk is gone"));
  await other.draft.commit({ role: "assistant", content: "One two." });
  expect(await other.take(source)).toEqual(["error"]);
  expect(other.chunks.at(-1)).toMatchObject({ errorText: "Error: the disk is gone" });
  expect(await source.next()).toBe(null);
});
