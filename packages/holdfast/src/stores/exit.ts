/** Notified when the process exits normally, so that `process` durability loses nothing then (S10). */
export interface Flushable {
  flushSync(): void;
}

const open = new Set<Flushable>();

function flushAll(): void {
  for (const one of open) {
    try {
      one.flushSync();
    } catch {
      // The process is ending and there is no one left to tell: the journal has already failed loudly, or fails when it
      // is next opened.
    }
  }
}

/** Flushes `one` at exit, until the returned function is called. When nothing is open, no listener stays behind. */
export function flushAtExit(one: Flushable): () => void {
  if (open.size === 0) process.on("exit", flushAll);
  open.add(one);
  return () => {
    if (open.delete(one) && open.size === 0) process.off("exit", flushAll);
  };
}
