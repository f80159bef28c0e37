import type { AppStateRecord } from "../conversation/records/records.ts";
import { isPlainObject } from "../journal/lines/plain.ts";
import type { Json } from "../journal/record.ts";
import { type Admission, found, reading } from "./admit.ts";
import { invalid } from "./refusals.ts";
import { assertSize, MESSAGE_BYTES_MAX } from "./size.ts";

/** By name, the values to keep; null takes a value away. */
export type AppStateChanges = Readonly<Record<string, Json>>;

const NAME_CHARS_MAX = 256;

/** Copied during the call (R19). Throws RECORD_INVALID, RECORD_NOT_JSON, RECORD_TOO_LARGE. */
export function admitAppState<M>(admission: Admission<M>, given: unknown): AppStateRecord[] {
  if (given === undefined || given === null) return [];
  const changes = reading("appState", () => {
    if (typeof given !== "object" || !isPlainObject(given))
      throw invalid(`appState must be an object, not ${found(given)}`);
    return Object.entries(given) as [string, Json | undefined][];
  });
  const records = changes.map(([name, value]): AppStateRecord => {
    if (name === "" || name.length > NAME_CHARS_MAX || !name.isWellFormed())
      throw invalid(`a name in appState must be a text of 1 to ${NAME_CHARS_MAX} characters`);
    // Left out in silence, it would keep its old value.
    if (value === undefined) throw invalid(`appState has no value for ${JSON.stringify(name)}: null takes it away`);
    return { kind: "state", name, value: admission.json(value, `appState.${name}`) };
  });
  const all = records.map(({ name, value }): Json => [name, value]);
  assertSize("appState", "state", all, MESSAGE_BYTES_MAX);
  return records;
}
