import type { AcpMessage, AiSdkMessage, Draft, ProbeAnswer, Session, SessionState, Store, Turn } from "holdfast";
import type { CallState } from "../../src/account/words.ts";
import { type Ending, endsNow, type Guarded } from "../../src/session/guarded.ts";
import type { LiveSession } from "../../src/session/session.ts";
import type { CallDecision } from "../../src/view/decide-call.ts";

/** What the lives say, in one dialect. */
export interface Voice {
  readonly dialect: "ai-sdk" | "acp";
  prompt(text: string): Said;
  says(text: string): Said;
  calls(ids: readonly string[], text?: string): Said | Said[];
  result(call: string): Said;
  /** Makes two calls, and asks for approval of the first. */
  asks(at: Stage, call: string, also: string): Promise<unknown>;
  decides(at: Stage, call: string, approved: boolean): Promise<unknown>;
}

export type Said = AiSdkMessage | AcpMessage;

/** What a step works on. */
export interface Stage {
  readonly voice: Voice;
  session: Session<Said>;
  turn: Turn<Said> | null;
  draft: Draft<Said> | null;
  store: Store;
}

type Step = (stage: Stage) => Promise<unknown>;

/**
 * What every surface must say of a session. `calls`: the state of each, and what happens to it if the program can run
 * calls and ask people.
 */
export interface Expected {
  readonly state: SessionState;
  readonly calls: Readonly<Record<string, readonly [CallState, CallDecision]>>;
  readonly answered?: true;
  /** The calls that were settled by asking the service. */
  readonly settled?: readonly string[];
  readonly queued?: number;
  readonly attempts?: number;
}

/** A session of which the first `until` steps were made before its process was killed. */
export interface Life {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly until: number;
  /** Its program does not promise to record every start. */
  readonly isBlind: boolean;
  readonly expected: Expected;
}

/** A story: each step with what is true if the process dies right after it. */
type Story = readonly (readonly [name: string, step: Step, expected: Expected])[];

const aiSdkCall = (toolCallId: string) => ({
  type: "tool-call" as const,
  toolCallId,
  toolName: "look",
  input: { at: toolCallId },
});

export const aiSdk: Voice = {
  dialect: "ai-sdk",
  prompt: (content) => ({ role: "user", content }),
  says: (content) => ({ role: "assistant", content }),
  calls: (ids, text) => ({
    role: "assistant",
    content: [...(text === undefined ? [] : [{ type: "text" as const, text }]), ...ids.map(aiSdkCall)],
  }),
  result: (toolCallId) => ({
    role: "tool",
    content: [{ type: "tool-result", toolCallId, toolName: "look", output: { type: "text", value: "seen" } }],
  }),
  asks: (at, call, also) =>
    at.turn!.append({
      role: "assistant",
      content: [
        ...[call, also].map(aiSdkCall),
        { type: "tool-approval-request", approvalId: `ask-${call}`, toolCallId: call },
      ],
    } as AiSdkMessage),
  decides: (at, call, approved) =>
    at.turn!.append({
      role: "tool",
      content: [{ type: "tool-approval-response", approvalId: `ask-${call}`, approved }],
    } as AiSdkMessage),
};

const acpText = (sessionUpdate: string, text: string) => ({ sessionUpdate, content: { type: "text", text } });
const acpCall = (toolCallId: string) => ({
  ...{ sessionUpdate: "tool_call", toolCallId, title: "look", rawInput: { at: toolCallId } },
});

/** As the package for editors records it: permission that was not given is a note of the session. */
export const acp: Voice = {
  dialect: "acp",
  prompt: (text) => ({ prompt: [{ type: "text", text }] }),
  says: (text) => acpText("agent_message_chunk", text),
  calls: (ids, text) => [...(text === undefined ? [] : [acpText("agent_message_chunk", text)]), ...ids.map(acpCall)],
  result: (toolCallId) => ({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" }),
  asks: async ({ session, turn }, call, also) => {
    await turn!.append([call, also].map(acpCall));
    await session.note("acp.unapproved", [call]);
    await turn!.append({ toolCall: { toolCallId: call }, options: [{ optionId: "yes", kind: "allow_once" }] });
  },
  decides: async ({ session }, _call, approved) => {
    if (approved) await session.note("acp.unapproved", []);
  },
};

const idle: Expected = { state: "idle", calls: {} };
const cut: Expected = { state: "interrupted", calls: {} };
const never = ["never-started", "run"] as const;
const unknown = ["outcome-unknown", "tell-model"] as const;
const safe = ["outcome-unknown", "run-again"] as const;
const waits = ["awaiting", "wait"] as const;

const create: Story[number] = ["created", async () => {}, idle];
const prompt: Story[number] = [
  "prompted",
  async (at) => {
    at.turn = await at.session.startTurn(at.voice.prompt("go"));
  },
  cut,
];
const asks =
  (...ids: string[]): Step =>
  async (at) =>
    at.turn!.append(at.voice.calls(ids));
const answer: Step = (at) => at.turn!.append(at.voice.says("All is well."));

/** Three calls at once: one that must not run twice, one that is safe, one that never starts. */
const calls: Story = [
  create,
  prompt,
  [
    "streaming",
    async (at) => {
      at.draft = at.turn!.request().draft;
      at.draft.push({ text: "I look" });
    },
    cut,
  ],
  [
    "three calls",
    (at) => at.draft!.commit(at.voice.calls(["a", "b", "c"], "I look.")),
    { state: "interrupted", calls: { a: never, b: never, c: never } },
  ],
  ["a starts", (at) => at.turn!.toolStarted("a"), { state: "interrupted", calls: { a: unknown, b: never, c: never } }],
  [
    "b starts",
    (at) => at.turn!.toolStarted("b", { replay: "safe" }),
    { state: "interrupted", calls: { a: unknown, b: safe, c: never } },
  ],
  [
    "a ends",
    (at) => at.turn!.toolEnded("a", { value: "seen" }),
    { state: "interrupted", calls: { b: safe, c: never } },
  ],
  ["b ends", (at) => at.turn!.toolEnded("b", { error: "dark" }), { state: "interrupted", calls: { c: never } }],
  ["c starts", (at) => at.turn!.toolStarted("c"), { state: "interrupted", calls: { c: unknown } }],
  ["c has a result", (at) => at.turn!.append(at.voice.result("c")), cut],
  ["answered", answer, { ...cut, answered: true }],
  ["ended", (at) => at.turn!.end(), idle],
  ["second prompt", prompt[1], cut],
  ["queued", (at) => at.session.enqueue(at.voice.prompt("and then")), { ...cut, queued: 1 }],
];

/** One call needs approval, the other does not. */
const approval: Story = [
  create,
  prompt,
  ["asked for approval", (at) => at.voice.asks(at, "a", "b"), { state: "interrupted", calls: { a: waits, b: never } }],
  [
    "suspended",
    (at) => at.turn!.suspend({ reason: "approval", calls: ["a"] }),
    { state: "waiting", calls: { a: waits, b: never } },
  ],
  [
    "resumed for the answer",
    async (at) => {
      at.turn = await at.session.resumeTurn({ calls: { runs: true, asks: true } });
    },
    { state: "interrupted", calls: { a: waits, b: never } },
  ],
  ["approved", (at) => at.voice.decides(at, "a", true), { state: "interrupted", calls: { a: never, b: never } }],
  [
    "approved and started",
    (at) => at.turn!.toolStarted("a"),
    { state: "interrupted", calls: { a: unknown, b: never } },
  ],
];

const denied: Story = [
  ...approval.slice(0, 5),
  [
    "denied",
    (at) => at.voice.decides(at, "a", false),
    { state: "interrupted", calls: { a: ["awaiting", "tell-model"], b: never } },
  ],
];

const started: Story = [
  create,
  prompt,
  ["one call", asks("a"), { state: "interrupted", calls: { a: never } }],
  ["it starts", (at) => at.turn!.toolStarted("a"), { state: "interrupted", calls: { a: unknown } }],
];
const ended = (name: string, end: Step, expected: Expected): Story => [...started, [name, end, expected]];
const open = { a: unknown };
const tellEnd = async ({ session }: Stage, ending: Ending): Promise<void> =>
  (session as unknown as Guarded)[endsNow](ending);

/** What a worker records besides what an application can. */
const worker = ({ session }: Stage): LiveSession<Said> => session as LiveSession<Said>;
const LATER = "2199-01-01T00:00:00.000Z";

/** A turn that sleeps; one that workers tried and gave up on, and that a person lets them retry. */
const pauses: readonly Story[] = [
  [
    create,
    prompt,
    ["a call before a pause", asks("a"), { state: "interrupted", calls: { a: never } }],
    [
      "asleep",
      (at) => at.turn!.suspend({ reason: "the market is closed", until: LATER }),
      { state: "paused", calls: { a: never } },
    ],
    [
      "asleep, then compacted",
      (at) => at.session.replace([...at.session.entries], { reason: "compaction" }),
      { state: "paused", calls: { a: never } },
    ],
    [
      "woken",
      async (at) => {
        at.turn = await at.session.resumeTurn({ calls: { runs: true, asks: true } });
      },
      { state: "interrupted", calls: { a: never } },
    ],
  ],
  [
    ...started,
    ["claimed by a worker", (at) => worker(at).close(), { state: "interrupted", calls: open }],
    [
      "failed in the hands of a worker",
      async (at) => {
        at.session = await at.store.resume<Said>(at.session.id);
        await worker(at).claimTurn("w1");
        await worker(at).suspendTurn({ reason: "no credit", until: LATER, attempts: 1 });
      },
      { state: "paused", calls: open, attempts: 1 },
    ],
    [
      "parked",
      (at) => worker(at).suspendTurn({ reason: "no credit", parked: 5 }),
      { state: "parked", calls: open, attempts: 5 },
    ],
    [
      "parked, then to be retried",
      (at) => worker(at).suspendTurn({ reason: "retry", until: Date.now() }),
      { state: "paused", calls: open },
    ],
  ],
];

/** A call whose tool has steps. */
const steps: Story = [
  create,
  prompt,
  ["one call with steps", asks("a"), { state: "interrupted", calls: { a: never } }],
  [
    "it starts, and is safe",
    (at) => at.turn!.toolStarted("a", { replay: "safe" }),
    { state: "interrupted", calls: { a: safe } },
  ],
  ["a step starts", (at) => at.turn!.stepStarted("a", "reserve"), { state: "interrupted", calls: { a: safe } }],
  [
    "a step finished, another started",
    async (at) => {
      await at.turn!.stepEnded("a", "reserve", { value: 7 });
      await at.turn!.stepStarted("a", "charge");
    },
    { state: "interrupted", calls: { a: safe } },
  ],
];

/** How a turn can end, while a tool runs. */
const ends: readonly Story[] = [
  ended("stopped by the user", (at) => at.turn!.abort({ by: "user" }), { state: "stopped", calls: open }),
  ended("closed in mid-turn", (at) => at.session.close(), { state: "interrupted", calls: open }),
  ended("aborted by a server that shuts down", (at) => at.turn!.abort({ by: "server" }), {
    state: "interrupted",
    calls: open,
  }),
  ended("failed", (at) => at.turn!.fail(new Error("no credit")), { state: "failed", calls: open }),
  ended("told to end", (at) => tellEnd(at, { signal: "SIGTERM" }), { state: "interrupted", calls: open }),
  ended("crashed", (at) => tellEnd(at, { signal: "uncaughtException", error: "TypeError: x" }), {
    state: "failed",
    calls: open,
  }),
  [
    ...ended("stopped, then resumed", (at) => at.turn!.abort({ by: "user" }), { state: "stopped", calls: open }),
    [
      "resumed after a stop",
      async (at) => {
        at.turn = await at.session.resumeTurn();
      },
      cut,
    ],
    ["answered after a stop", answer, { ...cut, answered: true }],
    [
      "stopped when it had answered",
      (at) => at.turn!.abort({ by: "user" }),
      { state: "stopped", calls: {}, answered: true },
    ],
  ],
  [
    ...ended("failed, then replaced", (at) => at.turn!.fail(new Error("no credit")), { state: "failed", calls: open }),
    ["replaced by another turn", prompt[1], cut],
    ["and that one completed", (at) => at.turn!.append(at.voice.says("Done."), { end: true }), idle],
  ],
];

/** A program that does not promise to record every start: what has no start may have run. */
const blind: Story = [
  create,
  prompt,
  [
    "two calls, starts not recorded",
    asks("a", "b"),
    { state: "interrupted", calls: { a: ["unrecorded", "tell-model"], b: ["unrecorded", "tell-model"] } },
  ],
  [
    "one start recorded all the same",
    (at) => at.turn!.toolStarted("a"),
    { state: "interrupted", calls: { a: unknown, b: ["unrecorded", "tell-model"] } },
  ],
];

/** What replaces a conversation in the middle of a turn. */
const epochs: readonly Story[] = [
  [
    ...started,
    [
      "compacted in mid-turn",
      (at) => at.session.replace([...at.session.entries], { reason: "compaction" }),
      { state: "interrupted", calls: open },
    ],
    [
      "forked in mid-turn",
      async (at) => {
        at.session = await at.store.fork<Said>(at.session.id);
      },
      idle,
    ],
  ],
  [
    create,
    ["queued before the first turn", (at) => at.session.enqueue(at.voice.prompt("later")), { ...idle, queued: 1 }],
  ],
];

/** Another process opens the session and asks what happened to the calls of the one that was cut off. */
const settle =
  (answers: Readonly<Record<string, ProbeAnswer>>): Step =>
  async (at) => {
    const { id } = at.session;
    if (!at.store.live(id)) at.session = await at.store.resume<Said>(id);
    await at.session.settleCalls({ look: (call) => answers[call.id] ?? "unknown" });
  };

/** Calls whose outcome was unknown, asked about one after another. */
const settled: Story = [
  create,
  prompt,
  ["three calls to settle", asks("a", "b", "c"), { state: "interrupted", calls: { a: never, b: never, c: never } }],
  [
    "all three started",
    async (at) => {
      for (const id of ["a", "b", "c"]) await at.turn!.toolStarted(id);
    },
    { state: "interrupted", calls: { a: unknown, b: unknown, c: unknown } },
  ],
  [
    "closed with three started",
    (at) => at.session.close(),
    { state: "interrupted", calls: { a: unknown, b: unknown, c: unknown } },
  ],
  ["nobody can tell", settle({}), { state: "interrupted", calls: { a: unknown, b: unknown, c: unknown } }],
  [
    "settled: one took effect",
    settle({ a: { value: "seen" } }),
    { state: "interrupted", calls: { b: unknown, c: unknown }, settled: ["a"] },
  ],
  [
    "settled: one did not happen",
    settle({ b: "did-not-happen" }),
    { state: "interrupted", calls: { b: never, c: unknown }, settled: ["a", "b"] },
  ],
  [
    "settled, then compacted",
    (at) => at.session.replace([...at.session.entries], { reason: "compaction" }),
    { state: "interrupted", calls: { b: never, c: unknown }, settled: ["a", "b"] },
  ],
  [
    "settled: one failed",
    settle({ c: { error: "dark" } }),
    { state: "interrupted", calls: { b: never }, settled: ["a", "c", "b"] },
  ],
  [
    "settled, then resumed and run",
    async (at) => {
      at.turn = await at.session.resumeTurn({ calls: { runs: true, asks: true } });
      await at.turn.toolStarted("b");
    },
    { state: "interrupted", calls: { b: unknown }, settled: ["a", "c"] },
  ],
];

/** Every story, cut off after every step. Names are unique. */
export function lives(): Life[] {
  const found = new Map<string, Life>();
  for (const story of [calls, approval, denied, steps, ...ends, ...pauses, ...epochs, settled, blind]) {
    const steps = story.map(([, step]) => step);
    for (const [index, [name, , expected]] of story.entries())
      if (!found.has(name)) found.set(name, { name, steps, until: index + 1, isBlind: story === blind, expected });
  }
  return [...found.values()];
}
