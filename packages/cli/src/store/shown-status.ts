import type { Summary } from "holdfast";

/** The status of a session as people see it. */
export const STATUSES = [
  "running",
  "interrupted",
  "stopped",
  "failed",
  "waiting",
  "paused",
  "parked",
  "queued",
  "idle",
  "unreadable",
] as const;
export type ShownStatus = (typeof STATUSES)[number];

/** An idle session with queued prompts is `queued`: someone has to resume it. */
export function shownStatus({ status, queued, unreadable }: Summary): ShownStatus {
  if (unreadable) return "unreadable";
  return status === "idle" && queued > 0 ? "queued" : status;
}
