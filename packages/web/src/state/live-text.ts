import type { TextEvent } from "../api/wire.ts";

/** What the model is saying and what is not recorded as a message yet. */
export interface LiveText {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  /** Which answer it is; `""` if the server had begun it before we came. */
  readonly answer: string;
  /** How many characters of this answer are known, of all channels; 0 if it was not counted from its beginning. */
  readonly length: number;
}

const NOTHING: LiveText = { text: "", reasoning: "", calls: [], answer: "", length: 0 };

/** With one more piece. A piece that is already there, after a reconnect, adds only what is new in it. */
export function withText(live: LiveText | null, event: TextEvent): LiveText {
  const isSame = live !== null && (live.answer === event.answer || (live.answer === "" && event.at > 0));
  const before = isSame ? { ...live, answer: event.answer } : { ...NOTHING, answer: event.answer };
  const length = lengthOf(before);
  const known = Math.max(0, length - event.at);
  if (known >= event.text.length && event.text !== "") return before;
  const fresh = event.text.slice(known);
  const after = { ...before, length: length + fresh.length };
  if (event.channel === "text") return { ...after, text: before.text + fresh };
  if (event.channel === "reasoning") return { ...after, reasoning: before.reasoning + fresh };
  const { call } = event;
  const index = call ? before.calls.findIndex(({ id }) => id === call.id) : before.calls.length - 1;
  if (index < 0) return call ? { ...after, calls: [...before.calls, { ...call, input: fresh }] } : after;
  return {
    ...after,
    calls: before.calls.map((one, at) => (at === index ? { ...one, input: one.input + fresh } : one)),
  };
}

function lengthOf({ text, reasoning, calls }: LiveText): number {
  return text.length + reasoning.length + calls.reduce((sum, { input }) => sum + input.length, 0);
}

/** With a `draft` record of another process, whose words reach us by the journal alone. */
export function draftText(live: LiveText | null, record: Readonly<Record<string, unknown>>): LiveText | null {
  const { id, discarded, parts } = record;
  if (discarded !== undefined || typeof id !== "string") return null;
  let after: LiveText = live?.answer === id ? live : { ...NOTHING, answer: id };
  for (const part of Array.isArray(parts) ? (parts as Readonly<Record<string, unknown>>[]) : []) {
    if (typeof part["text"] === "string") after = { ...after, text: after.text + part["text"] };
    if (typeof part["reasoning"] === "string") after = { ...after, reasoning: after.reasoning + part["reasoning"] };
  }
  return after;
}
