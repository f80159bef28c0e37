import type { Json } from "holdfast";
import type { Ledger } from "holdfast/store";

/** The state of a journal at its head, as in its catalogue row. */
export interface HeadState {
  readonly head: number;
  readonly at: string;
  /** The sort key of lists. */
  readonly stamp: string;
  readonly row: Json;
}

export function headStateOf({ head, at, stamp, row }: Ledger): HeadState {
  return { head, at, stamp, row };
}
