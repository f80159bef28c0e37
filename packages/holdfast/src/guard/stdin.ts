import type { Guarded } from "../session/guarded.ts";
import { Roster } from "./roster.ts";

/** Neither event makes the stream flow or keeps the process alive: what there is to read stays the host's. */
const roster = new Roster(
  () => {
    process.stdin.prependListener("end", gone);
    process.stdin.prependListener("close", closed);
  },
  () => {
    process.stdin.off("end", gone);
    process.stdin.off("close", closed);
  },
);

/** A terminal that went away can be an error (EIO) and no end. After an end, and of a stream that the host destroys itself, `close` says nothing new. */
function closed(): void {
  if (process.stdin.errored) gone();
}

function gone(): void {
  roster.tell(Object.freeze({ signal: "stdin" }));
}

/** Tells `target` that whoever held the other end of stdin went away, until the returned function is called. */
export function watchStdin(target: Guarded): () => void {
  return roster.join(target);
}
