import { cutOffWords, type Interruption, type Reading, type Usage } from "holdfast";
import { damageLines } from "../store/damage.ts";
import type { Item } from "../transcript/item.ts";
import { itemsOf } from "../transcript/items.ts";
import { titleOf } from "../transcript/title.ts";

/** What an export for people shows, in every format. */
export interface Document {
  readonly title: string;
  /** Facts about the session, for the top of the page. */
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** Notices: the session was interrupted, is in use, or is damaged. */
  readonly warnings: readonly string[];
  readonly items: readonly Item[];
  /** Queued prompts. */
  readonly queued: readonly Item[];
}

/** Pure: the caller passes the time, and the usage including sub-agents. */
export function documentOf(reading: Reading<unknown>, exportedAt: string, usage: Usage = reading.usage): Document {
  const { attributes, entries, queue, interruption, holder } = reading;
  const items = itemsOf(reading);
  const models = [...new Set(items.flatMap((item) => ("model" in item && item.model ? [item.model] : [])))];
  const facts: [string, string][] = [["Session", reading.id]];
  const add = (name: string, value: string | undefined): void => {
    if (value) facts.push([name, value]);
  };
  add("Folder", attributes.cwd);
  // A summary comes before the older messages that it replaces.
  const times = entries.map(({ at }) => at).sort();
  add("First entry", times[0] && timeWords(times[0]));
  add("Last entry", times.length > 1 ? timeWords(times.at(-1)!) : undefined);
  add("Turns", String(new Set(entries.map(({ turn }) => turn)).size));
  add("Models", models.join(", "));
  add("Tokens", tokenWords(usage));
  add("Cost", costWords(usage));
  add("Application", attributes.app);
  add("Messages in", attributes.dialect);
  for (const [name, value] of Object.entries(attributes.labels)) add(`Label ${name}`, value);
  add("Part of", attributes.parent?.session);
  add("Forked from", attributes.forkedFrom?.session);
  add("Exported", timeWords(exportedAt));
  const warnings = [
    ...(interruption ? [interruptionWords(interruption)] : []),
    ...(holder && !interruption ? ["The session is open elsewhere and may have grown since."] : []),
    ...damageLines(reading.recovery, false),
  ];
  const waiting = queue.map(({ id, prompt, at, metadata }, index) => ({
    ...{ id, seq: index + 1, at, turn: 0, step: id, message: prompt, metadata },
  }));
  const queued = itemsOf({ entries: waiting, interruption: null, attributes });
  return { title: titleOf(attributes.title, items) || "Untitled session", facts, warnings, items, queued };
}

export function timeWords(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

function interruptionWords({ turn, how, draft, calls, answered }: Interruption<unknown>): string {
  if (how.kind === "suspended") return `Turn ${turn}: ${cutOffWords(how)}.`;
  const cut = draft && draft.text.trim() !== "" ? " The last answer is incomplete." : "";
  const open =
    calls.length === 0 ? "" : ` ${calls.length} ${calls.length === 1 ? "call has" : "calls have"} no result.`;
  return `Turn ${turn}: ${cutOffWords(how)}.${answered ? " The model had answered." : " It is incomplete."}${cut}${open}`;
}

export function tokenWords({ inputTokens, outputTokens }: Usage): string {
  if (inputTokens === undefined && outputTokens === undefined) return "";
  return `${inputTokens ?? 0} in, ${outputTokens ?? 0} out`;
}

function costWords({ cost, otherCosts = [] }: Usage): string {
  return [...(cost ? [cost] : []), ...otherCosts].map(({ amount, currency }) => `${amount} ${currency}`).join(", ");
}
