import type { OpenCall, Store, ToolProcess } from "holdfast";
import { defined } from "../defined.ts";
import { nullIfUnreadable } from "../store/usage.ts";
import type { Trust } from "../trust/trust.ts";

/** The name of the tool that starts a sub-agent. */
export const DELEGATE = "task";

/**
 * The session of the sub-agent started for a call; null if there is none. `message` is the message that makes the call,
 * because some servers reuse call ids (R9).
 */
export async function findChild(store: Store, parent: string, call: string, message?: string): Promise<string | null> {
  let after: string | undefined;
  do {
    const page = await store.list({
      parent,
      empty: true,
      ...defined({ labels: message === undefined ? undefined : { message }, after }),
    });
    const found = page.sessions.find((session) => session.parent?.call === call);
    if (found) return found.id;
    after = page.next;
  } while (after !== undefined);
  return null;
}

/** The calls on which the sub-agent of a call waits for a person; none if anything else of it is in flight. */
export async function callsWaitingBelow(
  store: Store,
  parent: string,
  { id, name, message }: OpenCall,
): Promise<readonly OpenCall[]> {
  const child = name === DELEGATE ? await findChild(store, parent, id, message ?? undefined) : null;
  const reading = child === null ? null : await nullIfUnreadable(store.read(child));
  const { how, calls = [] } = reading?.interruption ?? {};
  return how?.kind === "suspended" && calls.every(({ state }) => state === "awaiting") ? calls : [];
}

/**
 * Processes started by the sub-agent of a call and by its own sub-agents, which may have outlived them all (R7b). Only
 * those that this user's agents started.
 */
export async function processesBelow(
  store: Store,
  trust: Trust,
  parent: string,
  { id, name, message }: OpenCall,
): Promise<ToolProcess[]> {
  const child = name === DELEGATE ? await findChild(store, parent, id, message ?? undefined) : null;
  if (child === null) return [];
  // If it cannot be read, resuming it reports that.
  const reading = await nullIfUnreadable(store.read(child));
  const found: ToolProcess[] = [];
  for (const call of reading?.interruption?.calls ?? []) {
    if (call.process && trust.of(child).hasStarted(call.process)) found.push(call.process);
    found.push(...(await processesBelow(store, trust, child, call)));
  }
  return found;
}
