import type { Epoch } from "../api/wire.ts";

/** When a message was recorded, from its id: Holdfast's own ids begin with the time (UUID version 7). */
export function timeInId(id: string): number | null {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-/.exec(id) ?? [];
  return high === undefined ? null : Number.parseInt(high + low!, 16);
}

/** The replaced conversation that a time is in; null for the current one. `epochs` are in order. */
export function epochAt(epochs: readonly Epoch[], ms: number): Epoch | null {
  return epochs.find(({ to }) => ms < Date.parse(to)) ?? null;
}

export function replacedWords({ reason }: Epoch): string {
  switch (reason) {
    case "compaction":
      return "summarized";
    case "clear":
      return "cleared";
    case "rewind":
      return "rewound";
    default:
      return "replaced";
  }
}
