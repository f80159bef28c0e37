import type { Status } from "../api/wire.ts";

export const STATUS_WORDS: Readonly<Record<Status, string>> = {
  running: "Running",
  waiting: "Waiting for you",
  paused: "Continues by itself",
  parked: "Given up: retry?",
  interrupted: "Interrupted",
  stopped: "Stopped",
  failed: "Failed",
  idle: "Idle",
};

/** A session's status, by a word and a colour. */
export function StatusChip({ status }: { readonly status: Status }) {
  return (
    <span class={`chip chip-${status}`}>
      <span class="dot" aria-hidden="true" />
      {STATUS_WORDS[status]}
    </span>
  );
}
