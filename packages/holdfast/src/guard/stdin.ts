import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/** Neither event makes the stream flow or keeps the process alive: the input remains the host's to read. */
const roster = new Roster(
  () => {
    process.stdin.prependListener("end", gone);
    process.stdin.prependListener("close", onClose);
  },
  () => {
    process.stdin.off("end", gone);
    process.stdin.off("close", onClose);
  },
);

/**
 * A terminal that disappears can cause an error (EIO) instead of an end. After an end, or if the host destroys the
 * stream itself, `close` adds nothing.
 */
function onClose(): void {
  if (process.stdin.errored) gone();
}

function gone(): void {
  roster.tell(Object.freeze({ signal: "stdin" }));
}

/** Notifies `target` when the other end of stdin closes, until the returned function is called. */
export function watchStdin(target: Guarded): () => void {
  return roster.join(target);
}
