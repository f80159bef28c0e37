import { AppState } from "../conversation/app-state.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { AppStateRecord, SessionRecord } from "../conversation/records/records.ts";
import { storedRecord } from "../conversation/records/schema.ts";
import type { JournalRecord } from "../journal/record.ts";

/** The application's state as of a part of a conversation, from the journal. */
interface Part {
  /** The ids of the entries that are kept. */
  readonly kept: ReadonlySet<string>;
  /** Those of the others, in order. */
  readonly dropped: readonly string[];
}

/** Which part of the conversation these records of a new epoch keep; null if its state is the one of now. */
export function partIn<M>({ items, appState }: Conversation<M>, records: readonly SessionRecord[]): Part | null {
  if (!appState.isUsed) return null;
  const kept = new Set(records.flatMap((record) => (record.kind === "message" ? record.id : [])));
  const dropped = items.map(({ entry }) => entry.id).filter((id) => !kept.has(id));
  return dropped.length === 0 ? null : { kept, dropped };
}

/** The same for `replace`: what it keeps has its own state only if the rest is taken back, not summed up. */
export function rewoundPart<M>(conversation: Conversation<M>, records: readonly SessionRecord[]): Part | null {
  const [epoch] = records;
  const isTakenBack = epoch?.kind === "epoch" && (epoch.reason === "rewind" || epoch.reason === "clear");
  return isTakenBack ? partIn(conversation, records) : null;
}

/**
 * The state after the newest unit that recorded a message or an outcome of the part, and nothing for an empty part. A
 * part that only an epoch wrote (a summary, what a fork brought along) has the state from before the first unit that
 * is dropped. Null: the journal says nothing else than now. `history` reads all records, from the session's beginning.
 */
export async function stateOfPart(
  history: () => AsyncIterable<JournalRecord>,
  { kept, dropped }: Part,
): Promise<readonly AppStateRecord[] | null> {
  const units = await unitsOf(history, new Set([...kept, ...dropped]));
  let until = 0;
  for (const id of kept) until = Math.max(until, units.get(id)?.last ?? 0);
  if (kept.size === 0) return [];
  if (until === 0) {
    const first = dropped.find((id) => units.has(id));
    if (first === undefined) return null;
    until = units.get(first)!.first - 1;
  }
  const state = new AppState();
  for await (const record of history()) {
    if (record.seq > until) break;
    const stored = storedRecord(record);
    if (stored?.kind === "epoch") state.clear();
    else if (stored?.kind === "state") state.set(stored);
  }
  return state.saved();
}

/** The seqs of the units that recorded these entries. What an epoch brought along was recorded before. */
async function unitsOf(
  history: () => AsyncIterable<JournalRecord>,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, { readonly first: number; readonly last: number }>> {
  const units = new Map<string, { readonly first: number; readonly last: number }>();
  let unit = { first: 0, last: 0 };
  for await (const { seq, unit: size = 1, kind, id, carried } of history()) {
    if (seq > unit.last) unit = { first: seq, last: seq + size - 1 };
    const makesEntry = (kind === "message" || kind === "tool.ended") && carried !== true;
    if (makesEntry && typeof id === "string" && ids.has(id)) units.set(id, unit);
  }
  return units;
}
