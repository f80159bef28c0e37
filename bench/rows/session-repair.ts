import { type AnthropicMessage, dialects, type JournalRecord } from "holdfast";
import { Conversation } from "../../packages/holdfast/src/conversation/conversation.ts";
import { interruptionOf } from "../../packages/holdfast/src/view/interruption.ts";
import { messagesOf } from "../../packages/holdfast/src/view/messages.ts";
import { repairForPrompt } from "../../packages/holdfast/src/view/repairs.ts";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { makeConversation } from "../messages.ts";
import { median } from "../statistics.ts";

/** Four times the input in four times the time, with something for caches that it does not fit into. */
const TIMES = 4;
const AT_MOST = 4.6;
const MESSAGES = 10_000;
/** One call in so many messages has no result. */
const ONE_IN = 10;

/** A conversation that was cut off, and how many of its calls a repair closes. */
interface Cut {
  readonly records: string;
  readonly closes: number;
}

/**
 * A conversation of 10,000 messages that was cut off with 1,000 open calls, against one of a quarter of both: the fold,
 * what was in flight, what is recorded before the next prompt, and what the model sees. Without the disk, which would
 * hide it.
 */
export async function sessionRepairRow(bench: Bench, { figures }: Results): Promise<void> {
  const messages = makeConversation(MESSAGES, "anthropic").map(({ message }) => message as AnthropicMessage);
  for (const [where, cut] of CUTS) {
    const sizes = [cut(messages), cut(messages.slice(0, MESSAGES / TIMES))] as const;
    const ratios: number[] = [];
    const ms: [number[], number[]] = [[], []];
    // The first rounds warm up. Four small ones stand beside a large one, so that both see as much of the machine.
    for (let round = -2; round < bench.size(15, 7); round++) {
      const large = repair(sizes[0]);
      let small = 0;
      for (let i = 0; i < TIMES; i++) small += repair(sizes[1]) / TIMES;
      if (round < 0) continue;
      ms[0].push(large);
      ms[1].push(small);
      ratios.push(large / small);
    }
    figures.push({
      row: "session-repair",
      what: `repair 10,000 messages, 1,000 open calls ${where}, against a quarter`,
      bound: { atMost: AT_MOST },
      unit: "×",
      rounds: ratios,
      note: `${median(ms[0]).toFixed(1)} against ${median(ms[1]).toFixed(1)} ms`,
    });
  }
}

/** How long it takes, in milliseconds. */
function repair({ records, closes }: Cut): number {
  const parsed = JSON.parse(records) as JournalRecord[];
  globalThis.gc?.();
  const start = performance.now();
  const conversation = new Conversation<AnthropicMessage>(() => null, dialects.anthropic);
  for (const record of parsed) conversation.add(record);
  const interruption = interruptionOf(conversation);
  const repaired = repairForPrompt(conversation);
  const seen = messagesOf(conversation, { kind: "idle" });
  const ms = performance.now() - start;
  const closed = repaired.filter(({ call }) => call !== undefined).length;
  if (interruption?.calls.length !== closes || closed !== closes || seen.length === 0) {
    throw new Error(`${interruption?.calls.length} calls were open, and ${closed} were closed`);
  }
  return ms;
}

type Cutting = (messages: readonly AnthropicMessage[]) => Cut;

const CUTS: readonly (readonly [where: string, cut: Cutting])[] = [
  [
    "in one answer",
    (messages) => {
      const open = messages.length / ONE_IN;
      const answer = answerWith(Array.from({ length: open }, (_, i) => `open_${i}`));
      return { records: recorded([...messages.slice(0, -1), answer], open), closes: open };
    },
  ],
  [
    "in as many answers",
    (messages) => {
      const open = messages.length / ONE_IN;
      const answers = Array.from({ length: open }, (_, i) => answerWith([`open_${i}`]));
      return { records: recorded([...messages.slice(0, -open), ...answers], open), closes: open };
    },
  ],
  [
    // What damage leaves, or a program that did not record them. Only the live end is closed; the steps of the others
    // are not shown.
    "all over",
    (messages) => {
      const kept = messages.filter((_, i) => i % ONE_IN !== 2);
      return { records: recorded([...kept, answerWith(["open"])], 1), closes: 1 };
    },
  ],
];

function answerWith(ids: readonly string[]): AnthropicMessage {
  return { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "edit", input: { path: id } })) };
}

/** One long turn. Of the calls named `open_`, every other one was started. */
function recorded(messages: readonly AnthropicMessage[], open: number): string {
  const at = "2026-01-01T00:00:00.000Z";
  const unstamped: object[] = [
    { kind: "session", dialect: "anthropic" },
    { kind: "turn.started", turn: 1, prompt: "m0" },
  ];
  for (const [i, message] of messages.entries()) {
    unstamped.push({ kind: "message", id: `m${i}`, turn: 1, step: `m${i}`, message });
  }
  const last = messages.at(-1)!.content.length > 1;
  for (let i = 0; i < open; i += 2) {
    const place = last
      ? { message: `m${messages.length - 1}`, index: i }
      : { message: `m${messages.length - open + i}`, index: 0 };
    unstamped.push({ kind: "tool.started", turn: 1, call: `open_${i}`, name: "edit", ...place });
  }
  return JSON.stringify(unstamped.map((record, i) => ({ seq: i + 1, at, ...record })));
}
