import type { Log } from "../kill/log.ts";
import type { Fault, View } from "../kill/oracle.ts";

/** What the child was told against what the reopened journal holds. */
export interface DemoReceipt {
  /** Every try counts: what a death cut off is tried again by the next writer. */
  readonly attempted: number;
  readonly acknowledged: number;
  readonly recovered: number;
  /** Nobody had been told that they are safe, and they are. */
  readonly kept: number;
  readonly lost: number;
  readonly torn: number;
  readonly cutBytes: number;
  readonly quarantinedBytes: number;
  readonly balances: boolean;
}

/** Pure: the sums, and whether they agree. */
export function receiptOf(
  log: Log,
  view: View,
  faults: readonly Fault[],
  bytes: { readonly torn: number; readonly cutBytes: number; readonly quarantinedBytes: number },
): DemoReceipt {
  const recovered = new Set(view.found.map(({ id }) => id));
  const acknowledged = new Set(
    log.tried.flatMap(({ attempt, outcome }) => (outcome.is === "acknowledged" ? [attempt.id] : [])),
  );
  const lost = [...acknowledged].filter((id) => !recovered.has(id)).length;
  return {
    attempted: log.tried.length,
    acknowledged: acknowledged.size,
    recovered: recovered.size,
    kept: [...recovered].filter((id) => !acknowledged.has(id)).length,
    lost,
    ...bytes,
    balances: lost === 0 && faults.length === 0 && bytes.cutBytes === bytes.quarantinedBytes,
  };
}
