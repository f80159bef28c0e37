import { editOf } from "@holdfast/server/internal/edits";
import type { CallItem, DiffRow } from "../api/wire.ts";

/** Items never change, so each edit is computed once. */
const known = new WeakMap<CallItem, { readonly rows: readonly DiffRow[] } | null>();

/** What a call changes in a file, as a diff; null if it changes none. */
export function editRows(item: CallItem): { readonly rows: readonly DiffRow[] } | null {
  const before = known.get(item);
  if (before !== undefined) return before;
  const edit = editOf(item);
  known.set(item, edit);
  return edit;
}
