import { defined } from "../defined.ts";
import { HoldfastError } from "../errors.ts";

/**
 * The session of this process that a message object belongs to: it was synced into that session or handed out by it. An
 * array passed to another session is a mistake of the host (it switched sessions but not arrays), and would overwrite
 * one conversation with the other (R14 d).
 */
const owners = new WeakMap<object, string>();

/** The first owner stays; later sessions share the object. */
export function own(message: unknown, session: string): void {
  if (typeof message === "object" && message !== null && !owners.has(message)) owners.set(message, session);
}

export function ownerOf(message: unknown): string | null {
  return typeof message === "object" && message !== null ? (owners.get(message) ?? null) : null;
}

export function syncForeign(session: string, owner: string, index: number): HoldfastError {
  const message =
    `messages[${index}] belongs to session ${owner}, and was given to session ${session}: nothing was recorded. Give each session its own array; ` +
    "to continue another session's conversation, fork that session, or sync copies of its messages.";
  return new HoldfastError("SYNC_FOREIGN", message, { session, owner, index });
}

/** `dropped`: how many recorded messages are missing from the array, which is the first that this process syncs. */
export function syncRewrite(session: string, index: number, dropped?: number): HoldfastError {
  const what =
    dropped === undefined
      ? `messages[${index}] differs from what session ${session} has recorded there, and nothing was recorded.`
      : `The array lacks ${dropped} of the messages that session ${session} has recorded, from messages[${index}] on, and it is the first array that this process syncs: nothing was recorded.`;
  const message =
    `${what} The recorded conversation is unchanged. Load it first ([...session.messages]) and keep the beginning of the array as it was, ` +
    'or sync with rewrite: "epoch" to make the array the conversation.';
  return new HoldfastError("SYNC_REWRITE", message, { session, index, ...defined({ dropped }) });
}
