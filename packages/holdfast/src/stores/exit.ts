/** What is told when the process ends in order, so that `process` durability costs nothing then (S10). */
export interface Flushable {
  flushSync(): void;
}

const open = new Set<Flushable>();

function flushAll(): void {
  for (const one of open) {
    try {
      one.flushSync();
    } catch {
      // The process is ending and there is nobody left to tell: the journal has failed loudly before, or fails the next
      // time it is opened.
    }
  }
}

/** Flushes `one` at exit, until the returned function is called. No listener stays behind when nothing is open. */
export function flushAtExit(one: Flushable): () => void {
  if (open.size === 0) process.on("exit", flushAll);
  open.add(one);
  return () => {
    if (open.delete(one) && open.size === 0) process.off("exit", flushAll);
  };
}
