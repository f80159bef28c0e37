import { HoldfastError } from "../errors.ts";
import type { Holder } from "./contract.ts";

/**
 * Refusals that all stores share, so that the wording is the same. Nothing has happened when one of these is thrown.
 */

export function sessionNotFound(id: string): HoldfastError {
  const message = `There is no session ${id} in this store. Nothing was touched. List the sessions to see what exists.`;
  return new HoldfastError("SESSION_NOT_FOUND", message, { session: id });
}

export function notInTrash(id: string): HoldfastError {
  const message = `There is no session ${id} in the trash. Nothing was touched. It was never deleted, was restored already, or has been deleted for good.`;
  return new HoldfastError("SESSION_NOT_FOUND", message, { session: id });
}

export function sessionExists(id: string): HoldfastError {
  const message = `Session ${id} already exists. It was not touched. Open it, or use another id.`;
  return new HoldfastError("SESSION_EXISTS", message, { session: id });
}

export function sessionBusy(id: string, holder: Holder, sameProcess: boolean): HoldfastError {
  const message = `Session ${id} is being written by ${sameProcess ? "this process" : inWords(holder)}. Nothing was touched. You can still read it; to write, stop its writer first.`;
  return new HoldfastError("SESSION_BUSY", message, { session: id, holder: { ...holder }, sameProcess });
}

/** A store that one process uses at a time is open elsewhere. `holder` is null if it is another program's. */
export function storeBusy(url: string, holder: Holder | null, sameProcess: boolean): HoldfastError {
  const who = sameProcess ? "another thread of this process" : holder ? inWords(holder) : "another program";
  const message =
    `The store ${url} is in use by ${who}, and only one process can use it at a time. Nothing was touched. ` +
    "Close it there first. To look at sessions while an agent runs, keep them in a folder store.";
  return new HoldfastError("STORE_BUSY", message, { url, holder: holder && { ...holder }, sameProcess });
}

function inWords({ app, pid, host, since }: Holder): string {
  return `${app} (process ${pid} on ${host}, since ${since})`;
}

export function journalClosed(id: string): HoldfastError {
  const message = `The journal of session ${id} has been closed. Nothing was written. Open the session again to append to it.`;
  return new HoldfastError("JOURNAL_CLOSED", message, { session: id });
}

export function storeClosed(url: string): HoldfastError {
  return new HoldfastError("STORE_CLOSED", `The store ${url} has been closed. Nothing was touched. Open it again.`, {
    url,
  });
}

/** The cursor's record is missing or has changed (S19). */
export function cursorStale(id: string, cursor: string): HoldfastError {
  const shown = cursor.slice(0, 80);
  const message =
    `Session ${id} has no record ${JSON.stringify(shown)} any more: the end of the journal was lost and rewritten. ` +
    "Nothing was touched. Start over from seq 1.";
  return new HoldfastError("CURSOR_STALE", message, { session: id, cursor: shown, from: 1 });
}

/** `what` is a method name (`pack`). */
export function notSupported(what: string, url: string, instead: string): HoldfastError {
  return new HoldfastError("NOT_SUPPORTED", `The store ${url} has no ${what}. Nothing was touched. ${instead}`, {
    call: what,
    url,
  });
}
