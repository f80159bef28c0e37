import type { ChatEvent, ChatState, LiveAnswer } from "../contract/host.ts";
import type { Item } from "../contract/item.ts";
import type { StateEvent, TextEvent } from "../schemas/events.ts";

const NOTHING: LiveAnswer = { text: "", reasoning: "", calls: [] };
/** As much of a running tool's output as the host shows. */
const OUTPUT_CHARACTERS_MAX = 16_384;

/** A change of the state, and what to tell the listeners about it. */
export interface MirrorChange {
  readonly state: ChatState;
  readonly events: readonly ChatEvent[];
}

/** Applies streamed text. `answer`: the one that `state.live` belongs to. */
export function applyText(state: ChatState, piece: TextEvent, answer: string | null): MirrorChange {
  const live = piece.answer === answer && state.live ? state.live : NOTHING;
  const { channel, text, call } = piece;
  if (channel === "input") {
    const known = live.calls.find(({ id }) => id === call?.id);
    const calls = known
      ? live.calls.map((one) => (one === known ? { ...one, input: one.input + text } : one))
      : [...live.calls, { id: call?.id ?? "", name: call?.name ?? "", input: text }];
    return { state: { ...state, live: { ...live, calls } }, events: [] };
  }
  const now = { ...live, [channel]: live[channel] + text };
  return { state: { ...state, live: now }, events: [{ type: channel, text }] };
}

/** Applies a `state` event whose items, if any, are to be applied. */
export function applyState(before: ChatState, { state, items, event, whole }: StateEvent): MirrorChange {
  const { count: _count, ...members } = state;
  const spliced = items
    ? before.items.toSpliced(items.at, items.remove, ...(items.insert as readonly Item[]))
    : before.items;
  let now = { ...before, ...(members as Partial<ChatState>), items: spliced };
  const said = event as ChatEvent | undefined;
  if (said?.type === "tool.output") {
    const all = (now.outputs[said.call] ?? "") + said.text;
    // Without the half of a character that the cut may leave.
    const shown = all.slice(-OUTPUT_CHARACTERS_MAX).replace(/^[\uDC00-\uDFFF]/, "");
    now = { ...now, outputs: { ...now.outputs, [said.call]: shown } };
  }
  const events: ChatEvent[] = items ? itemEvents(before.items, items.insert as readonly Item[]) : [];
  if (said) events.push(said);
  else if (whole || (events.length === 0 && Object.keys(members).length > 0)) events.push({ type: "changed" });
  return { state: now, events };
}

/** An item that was only sent again does not count. */
export function itemEvents(before: readonly Item[], inserted: readonly Item[]): ChatEvent[] {
  const known = new Map(before.slice(-1000).map((item) => [item.id, item]));
  return inserted
    .filter((item) => {
      const old = known.get(item.id);
      return old === undefined || JSON.stringify(old) !== JSON.stringify(item);
    })
    .map((item) => ({ type: "item", item }));
}

/** Whether a version comes after another one of the same session. */
export function isNewer(version: string, than: string | null): boolean {
  if (than === null) return true;
  const [name, number] = splitVersion(version);
  const [otherName, otherNumber] = splitVersion(than);
  return name !== otherName || number > otherNumber;
}

export function isSameSeries(version: string, other: string | null): boolean {
  return other !== null && splitVersion(version)[0] === splitVersion(other)[0];
}

function splitVersion(version: string): [name: string, number: number] {
  const dot = version.lastIndexOf(".");
  return [version.slice(0, dot), Number(version.slice(dot + 1))];
}
