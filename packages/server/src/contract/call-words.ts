import type { CallState } from "./item.ts";

/** How far a call of a transcript has come, for people: the same words in a terminal, on the page and in exports. */
export const callStateWords: { readonly [S in CallState]: string } = {
  open: "no result yet",
  waiting: "waiting for approval",
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
  unknown: "outcome unknown",
  "not-run": "did not run",
};
