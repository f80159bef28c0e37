import type { AnthropicMessage, Draft, Outcome, ProbeAnswer, Session, Store, Turn } from "holdfast";

export type M = AnthropicMessage;
export const user = (text: string): M => ({ role: "user", content: text });
export const says = (text: string): M => ({ role: "assistant", content: text });
export const calls = (...ids: string[]): M => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: { id } })) as never,
});

/** What a life has come to: all that its steps need to be tried again. */
export interface Life {
  readonly store: Store;
  session: Session<M>;
  turn: Turn<M>;
  draft: Draft<M>;
  /** How often each tool ran, and what it came to. */
  readonly runs: Map<string, number>;
  readonly outcomes: Map<string, Outcome>;
}

type Step = [name: string, step: (life: Life) => Promise<unknown>];

/** Runs the tool once, whatever the store says, and sees to it that its outcome is recorded. */
async function tool(life: Life, id: string, fails = false): Promise<void> {
  const { turn, runs, outcomes } = life;
  const done = outcomes.get(id);
  if (done) {
    if (isOpen(life, id)) await turn.toolEnded(id, done);
    return;
  }
  await turn.tool(id, () => {
    runs.set(id, (runs.get(id) ?? 0) + 1);
    outcomes.set(id, fails ? { error: "it failed" } : { value: `result of ${id}` });
    if (fails) throw new Error("it failed");
    return `result of ${id}`;
  });
}

/** What failed is tried again when the others are done. */
async function all(running: Promise<void>[]): Promise<void> {
  for (const one of await Promise.allSettled(running)) if (one.status === "rejected") throw one.reason;
}

function isOpen({ session }: Life, id: string): boolean {
  const results = JSON.stringify(session.entries.map(({ message }) => message));
  return !results.includes(`"tool_use_id":"${id}"`);
}

async function reopen(life: Life): Promise<void> {
  const { id } = life.session;
  await life.session.close();
  if (!life.store.live(id)) life.session = await life.store.resume<M>(id);
}

/** What the probes say of calls in doubt. */
const ANSWERS: Readonly<Record<string, ProbeAnswer>> = { e: { value: "it did" }, f: "did-not-happen" };

/** Every call of the surface that writes, in an order that a real session might have. Each step can be tried again. */
export const LIFE: Step[] = [
  ["enqueue", ({ session }) => session.enqueue(user("first"), { id: "q1", metadata: { from: "phone" } })],
  ["enqueue another", ({ session }) => session.enqueue(user("withdrawn"), { id: "q2" })],
  ["dequeue", ({ session }) => session.dequeue("q2")],
  ["note", ({ session }) => session.note("plan", { steps: [1, 2] })],
  ["rename", ({ session }) => session.rename("a title")],
  [
    "start with the queue",
    async (life) => {
      life.turn = await life.session.startTurn(life.session.queue[0]!);
    },
  ],
  [
    "stream",
    async (life) => {
      life.draft = life.turn.request().draft;
      life.draft.push({ text: "I will " });
      await life.session.flush();
    },
  ],
  ["commit", ({ draft }) => draft.commit(calls("a", "b", "c"), { usage: { outputTokens: 7 }, model: "m1" })],
  ["patch", ({ session }) => session.patch("q1", { seen: true })],
  ["three tools", (life) => all([tool(life, "a"), tool(life, "b", true), tool(life, "c")])],
  ["answer", ({ turn }) => turn.append([says("one"), says("two")], { id: "x", usage: { outputTokens: 1 } })],
  ["steer", ({ turn }) => turn.append(user("and more"), { id: "y" })],
  ["edit", ({ session }) => session.edit(["y"], [user("and less")], { reason: "second thoughts", now: true })],
  [
    "compact",
    ({ session }) => session.replace([user("a summary"), ...session.entries.slice(-3)], { reason: "compaction" }),
  ],
  ["undo", ({ session }) => session.undo()],
  ["usage", ({ turn }) => turn.usage({ inputTokens: 3 })],
  ["end", ({ turn }) => turn.end()],
  [
    "start",
    async (life) => {
      life.turn = await life.session.startTurn([user("second"), user("prompt")], { id: "p2" });
    },
  ],
  ["call", ({ turn }) => turn.append(calls("d"), { id: "z" })],
  [
    "a start alone",
    async (life) => {
      await life.turn.toolStarted("d", { replay: "safe" });
      life.outcomes.set("d", { value: "late" });
    },
  ],
  [
    "stream again",
    async (life) => {
      life.draft = life.turn.request().draft;
      life.draft.push({ text: "Once upon" });
      await life.session.flush();
    },
  ],
  ["abort", ({ turn }) => turn.abort({ by: "user", reason: "enough" })],
  ["a late result", ({ turn, outcomes }) => turn.toolEnded("d", outcomes.get("d")!)],
  [
    "resume the turn",
    async (life) => {
      life.turn = await life.session.resumeTurn({ draft: "keep" });
    },
  ],
  ["suspend", ({ turn }) => turn.suspend({ reason: "may I?" })],
  [
    "a prompt instead",
    async (life) => {
      life.turn = await life.session.startTurn(user("third"), { id: "p3" });
    },
  ],
  ["fail", ({ turn }) => turn.fail(new Error("the model is gone"))],
  ["open again", reopen],
  [
    "one more turn",
    async (life) => {
      life.turn = await life.session.startTurn(user("fourth"), { id: "p4" });
    },
  ],
  ["calls to be in doubt", ({ turn }) => turn.append(calls("e", "f", "g"), { id: "doubt" })],
  ["e starts", ({ turn }) => turn.toolStarted("e", { before: { head: "abc" } })],
  ["f starts", ({ turn }) => turn.toolStarted("f")],
  ["g starts", ({ turn }) => turn.toolStarted("g")],
  ["cut off", ({ turn }) => turn.abort({ by: "close" })],
  ["open again", reopen],
  ["settle", ({ session }) => session.settleCalls({ work: (call) => ANSWERS[call.id] ?? "unknown" })],
  ["compact what is settled", ({ session }) => session.replace([...session.entries], { reason: "compaction" })],
  [
    "resume what is settled",
    async (life) => {
      life.turn = await life.session.resumeTurn({ calls: "rerun" });
    },
  ],
  ["what did not happen", (life) => tool(life, "f")],
  ["its answer", ({ turn }) => turn.append(says("done"), { id: "last" })],
  ["its end", ({ turn }) => turn.end()],
];
