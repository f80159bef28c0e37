import { type ModelMessage, type ToolSet, tool } from "ai";
import type { Entry, Interruption, OpenCall } from "holdfast";
import { describe, expect, test } from "vitest";
import { isOver, isWaiting, shownIn, stateOf, type View } from "../../../../src/ai-sdk/chat/state.ts";
import { AnswerKeys, cutOffCalls, waitsOf } from "../../../../src/ai-sdk/chat/waits.ts";
import { nothing } from "../../../memory-chat.ts";

/** What a turn waits for, and what a page is told of it, in each state that a call and a turn can be in. */

const tools: ToolSet = {
  send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }),
  where: tool({ inputSchema: nothing }),
  askedWhere: tool({ inputSchema: nothing, needsApproval: true }),
};

type How = Interruption<ModelMessage>["how"];
type State = OpenCall["state"];

const KILLED: How = { kind: "killed" };
const SUSPENDED: How = { kind: "suspended", reason: "approval" };
const STOPPED: How = { kind: "aborted", by: "the user" };

let seq = 0;
const entry = (turn: number, message: ModelMessage, id = `e${++seq}`): Entry<ModelMessage> => ({
  ...{ id, seq: ++seq, at: "", turn, step: id, message, metadata: {} },
});

interface Made {
  readonly tool: string;
  readonly state: State;
  /** Undefined: nobody was asked. Null: nobody has answered. */
  readonly approved?: boolean | null;
}

const call = ({ tool: name, state, approved }: Made): OpenCall => ({
  ...{ id: name, message: "m", name, input: {}, state },
  ...(typeof approved === "boolean" ? { approved } : {}),
});

/** As the library tells it. */
const stateFor = (how: How): View["state"] =>
  (
    ({
      killed: "interrupted",
      signal: "interrupted",
      aborted: "stopped",
      failed: "failed",
      "handed-over": "paused",
      suspended: "waiting",
    }) as const
  )[how.kind];

/** A turn with one call, and before it a turn with the same one, which was approved. */
function viewOf(how: How, made: Made, more: Partial<View> = {}): View {
  const { tool: name, approved } = made;
  const content = [
    { type: "tool-call" as const, toolCallId: name, toolName: name, input: {} },
    ...(approved === undefined
      ? []
      : [{ type: "tool-approval-request" as const, approvalId: `ask ${name}`, toolCallId: name }]),
  ];
  const response = (is: boolean): ModelMessage => ({
    role: "tool",
    content: [{ type: "tool-approval-response", approvalId: `ask ${name}`, approved: is }],
  });
  const entries = [
    entry(1, { role: "user", content: "Earlier." }),
    entry(1, { role: "assistant", content: "Words alone." }),
    entry(1, { role: "assistant", content }),
    entry(1, response(true)),
    entry(2, { role: "user", content: "Do it." }),
    entry(2, { role: "assistant", content }),
    ...(typeof approved === "boolean" ? [entry(2, response(approved))] : []),
  ];
  const calls = [call(made)];
  const interruption = { turn: 2, how, answered: false, calls } as unknown as View["interruption"];
  const nobody = { holder: null, attributes: {}, draft: null };
  const view = { id: "s", entries, messages: [], interruption, calls, queue: [], running: null, ...nobody };
  return { ...view, state: stateFor(how), ...more } as unknown as View;
}

/** By the state of the call and what was decided: what the turn waits for, and whether the call was cut off. */
const ROWS: readonly (readonly [Made, approvals: number, outputs: number, isCutOff: boolean])[] = [
  [{ tool: "send", state: "awaiting", approved: null }, 1, 0, false],
  [{ tool: "send", state: "never-started", approved: true }, 0, 0, false],
  [{ tool: "send", state: "awaiting", approved: false }, 0, 0, true],
  [{ tool: "send", state: "outcome-unknown", approved: true }, 0, 0, true],
  [{ tool: "send", state: "never-started" }, 0, 0, true],
  [{ tool: "send", state: "unrecorded" }, 0, 0, true],
  [{ tool: "where", state: "never-started" }, 0, 1, false],
  [{ tool: "where", state: "outcome-unknown" }, 0, 1, false],
  [{ tool: "askedWhere", state: "awaiting", approved: null }, 1, 0, false],
  [{ tool: "askedWhere", state: "never-started", approved: true }, 0, 1, false],
  [{ tool: "askedWhere", state: "awaiting", approved: false }, 0, 0, true],
  [{ tool: "where", state: "provider" }, 0, 0, false],
  [{ tool: "send", state: "provider", approved: null }, 1, 0, false],
  [{ tool: "gone", state: "never-started" }, 0, 0, true],
];

describe.each(ROWS)("a call %j", (made, approvals, outputs, isCutOff) => {
  test.each([KILLED, SUSPENDED])("of a turn that is %j waits for what only the page can give", (how) => {
    const view = viewOf(how, made);
    const waits = waitsOf(view, tools);
    expect([[...waits.approvals.keys()], [...waits.outputs.keys()]]).toEqual([
      approvals ? [`ask ${made.tool}`] : [],
      outputs ? [made.tool] : [],
    ]);
    expect(cutOffCalls(view, tools).map(({ id }) => id)).toEqual(isCutOff ? [made.tool] : []);
    expect(isWaiting(view, tools)).toBe(approvals + outputs > 0);
    expect(isOver(view, tools)).toBe(approvals + outputs > 0);
  });

  test("waits for nothing when a person has stopped the turn, and has no outcome", () => {
    const view = viewOf(STOPPED, made);
    const waits = waitsOf(view, tools);
    expect(waits.approvals.size + waits.outputs.size).toBe(0);
    expect(isWaiting(view, tools)).toBe(false);
    expect(isOver(view, tools)).toBe(true);
    expect(cutOffCalls(view, tools)).toHaveLength(made.state === "provider" ? 0 : 1);
  });

  test("waits in the same way while its turn is open here, and a turn that is complete has none", () => {
    const { entries } = viewOf(KILLED, made);
    const open = { entries, interruption: null, turn: { number: 2, open: [call(made)] } as never };
    const waits = waitsOf(open, tools);
    expect([waits.approvals.size, waits.outputs.size]).toEqual([approvals, outputs]);
    const over = { ...viewOf(KILLED, made), interruption: null };
    expect(waitsOf(over, tools)).toEqual({ approvals: new Map(), outputs: new Map() });
    expect([cutOffCalls(over, tools), isWaiting(over, tools), isOver(over, tools)]).toEqual([[], false, true]);
  });
});

test("an approval of an earlier turn is not one of this turn, and one that the provider runs is known as such", () => {
  const view = viewOf(SUSPENDED, { tool: "send", state: "awaiting", approved: null });
  expect([...waitsOf(view, tools).approvals]).toMatchObject([["ask send", { id: "send", state: "awaiting" }]]);
  const provider = viewOf(SUSPENDED, { tool: "send", state: "provider", approved: null });
  expect([...waitsOf(provider, tools).approvals]).toMatchObject([["ask send", { id: "send", state: "provider" }]]);
});

const answered = (how: How): View => {
  const view = viewOf(how, { tool: "send", state: "outcome-unknown" });
  return { ...view, interruption: { ...view.interruption!, answered: true, calls: [] } };
};

const QUEUED = { queue: [{ id: "q", prompt: { role: "user", content: "Next." } }] } as never as Partial<View>;
const LOST: Made = { tool: "send", state: "outcome-unknown" };
const ASKS: Made = { tool: "send", state: "awaiting", approved: null };

test.each<[string, View, status: string, interrupted: string | null]>([
  ["runs", { ...viewOf(KILLED, LOST), state: "running" }, "running", null],
  ["runs, with a prompt behind it", { ...viewOf(KILLED, LOST, QUEUED), state: "running" }, "running", null],
  ["was killed", viewOf(KILLED, LOST), "interrupted", "killed outcome-unknown"],
  [
    "was killed by a signal",
    viewOf({ kind: "signal", signal: "SIGTERM" }, LOST),
    "interrupted",
    "killed outcome-unknown",
  ],
  [
    "was killed before the start",
    viewOf(KILLED, { ...LOST, state: "never-started" }),
    "interrupted",
    "killed never-started",
  ],
  ["was killed in the start", viewOf(KILLED, { ...LOST, state: "unrecorded" }), "interrupted", "killed unrecorded"],
  ["was killed while the provider worked", viewOf(KILLED, { ...LOST, state: "provider" }), "interrupted", "killed "],
  ["failed", viewOf({ kind: "failed", error: "down" }, LOST), "interrupted", "failed outcome-unknown"],
  [
    "was stopped by a program",
    viewOf({ kind: "aborted", by: "a limit" }, LOST),
    "interrupted",
    "stopped outcome-unknown",
  ],
  ["was stopped by the user", viewOf(STOPPED, LOST), "ready", null],
  ["waits", viewOf(SUSPENDED, ASKS), "waiting", null],
  ["was killed beside a question", viewOf(KILLED, ASKS), "waiting", "killed "],
  ["is suspended for nothing that a page gives", viewOf(SUSPENDED, LOST), "ready", null],
  ["had its whole answer", answered(KILLED), "ready", null],
  ["is over", { ...viewOf(KILLED, LOST), state: "idle", interruption: null }, "ready", null],
  [
    "is over, with a prompt behind it",
    { ...viewOf(KILLED, LOST, QUEUED), state: "idle", interruption: null },
    "interrupted",
    "killed ",
  ],
])("a page of a chat whose turn %s", (_, view, status, interrupted) => {
  const state = stateOf(view, { tools });
  const broken = state.interrupted;
  expect(state.status).toBe(status);
  expect(broken && `${broken.reason} ${broken.tools.map((one) => one.state).join()}`).toBe(interrupted);
  expect(state.messages.some(({ id }) => id === "q")).toBe(view.queue.length > 0);
  for (const one of broken?.tools ?? []) expect(one).toMatchObject({ toolCallId: "send", toolName: "send", input: {} });
  if (view.interruption?.answered) expect(isOver(view, tools)).toBe(true);
});

test("a call that was cut off is shown with what the model would be told last, and only that one", () => {
  const told = (toolCallId: string, value: string): ModelMessage => ({
    role: "tool",
    content: [{ type: "tool-result", toolCallId, toolName: toolCallId, output: { type: "error-text", value } }],
  });
  const messages: ModelMessage[] = [
    { role: "user", content: "Do it." },
    told("send", "of an earlier call"),
    told("other", "of another call"),
    told("send", "cut off"),
  ];
  const outputs = (view: View): unknown[] =>
    shownIn(view, { tools, onError: String }).flatMap(({ parts }) =>
      parts.flatMap((part) => ("errorText" in part && part.errorText ? [part.errorText] : [])),
    );
  expect(outputs(viewOf(KILLED, LOST, { messages }))).toEqual(["cut off"]);
  expect(outputs(viewOf(KILLED, LOST))).toEqual([]);
  expect(outputs(viewOf(SUSPENDED, ASKS, { messages }))).toEqual([]);
});

test("each answer has a key of its own: by what asked for it, and by the message that made the call", () => {
  const asking = (name: string): ModelMessage => ({
    role: "assistant",
    content: [
      { type: "text", text: "So." },
      { type: "tool-call", toolCallId: `call ${name}`, toolName: name, input: {} },
      { type: "tool-approval-request", approvalId: `ask ${name}`, toolCallId: `call ${name}` },
    ],
  });
  const keysIn = (...entries: Entry<ModelMessage>[]): AnswerKeys => new AnswerKeys(entries, 2, tools);
  const approval = (name: string) => ({ kind: "approval" as const, id: `ask ${name}` });
  const output = (name: string) => ({ kind: "output" as const, id: `call ${name}` });
  const keys = keysIn(
    entry(1, asking("askedWhere"), "m0"),
    entry(2, { role: "user", content: "Do it." }),
    entry(2, { role: "assistant", content: "Words." }),
    entry(2, asking("where"), "m1"),
    entry(2, asking("send"), "m2"),
  );
  const all = [keys.of(approval("where")), keys.of(output("where")), keys.of(approval("send"))];
  expect(all.every((key) => typeof key === "string")).toBe(true);
  expect(new Set(all).size).toBe(3);
  expect(keys.of(output("send")), "the server runs it").toBe(null);
  expect([keys.of(approval("askedWhere")), keys.of(output("askedWhere"))], "of another turn").toEqual([null, null]);
  expect(keysIn(entry(2, asking("where"), "m1")).of(output("where")), "the same in the next process").toBe(all[1]);
  expect(keysIn(entry(2, asking("where"), "m3")).of(output("where")), "of another message").not.toBe(all[1]);
});
