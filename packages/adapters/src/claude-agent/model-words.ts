import type { SessionInterruption } from "./surface.ts";

/** Enough to recognise a call; the rest is in the journal. */
const INPUT_CHARS_MAX = 500;
const OUTCOME_CHARS_MAX = 2000;

/** What the model is told about the end of the previous process; null if nothing is to be told. */
export function describeInterruption({ prompts, calls, unreadable = [] }: SessionInterruption): string | null {
  const unknown = unreadable.map(
    (subpath) =>
      `The record of the sub-agent ${subpath} cannot be read: whether its tool calls took effect is unknown.`,
  );
  if (prompts.length === 0 && calls.length === 0) return unknown.length > 0 ? unknown.join("\n") : null;
  const lines = ["The previous process of this session died before it could finish.", ...unknown];
  for (const prompt of prompts)
    lines.push(`This prompt was not answered, and is not in the conversation: ${quoted(prompt)}`);
  if (calls.length > 0) lines.push("These tool calls have no result in the conversation:");
  for (const { name, input, outcome, subpath } of calls) {
    const by = subpath === undefined ? "" : ` (made by the sub-agent ${subpath})`;
    const call = `- ${name} ${cut(JSON.stringify(input), INPUT_CHARS_MAX)}${by}`;
    if (!outcome) lines.push(`${call}: it had started, and may have taken effect. Check before you run it again.`);
    else if ("error" in outcome)
      lines.push(`${call}: it failed. Do not run it again. Its outcome: ${quoted(outcome.error)}`);
    else lines.push(`${call}: it completed. Do not run it again. Its outcome: ${quoted(outcome.value)}`);
  }
  return lines.join("\n");
}

function quoted(value: unknown): string {
  return cut(JSON.stringify(value) ?? "null", OUTCOME_CHARS_MAX);
}

/** Without half a character at its end. */
function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax).replace(/[\ud800-\udbff]$/, "")}…`;
}
