import { defined } from "../defined.ts";
import { HoldfastError } from "../errors.ts";

/**
 * Which session of this process a message object belongs to: it was synced into it, or handed out by it. An array that ends up in another session is a mistake of the host's (a swap that forgot the array), and would
 * overwrite one conversation with the other (R14 d).
 */
const owners = new WeakMap<object, string>();

/** The first one stays: whoever shares an object later shares it. */
export function own(message: unknown, session: string): void {
  if (typeof message === "object" && message !== null && !owners.has(message)) owners.set(message, session);
}

export function ownerOf(message: unknown): string | null {
  return typeof message === "object" && message !== null ? (owners.get(message) ?? null) : null;
}

export function syncForeign(session: string, owner: string, index: number): HoldfastError {
  const message =
    `messages[${index}] belongs to session ${owner}, and was given to session ${session}: nothing was recorded. Give each session its own array; ` +
    "to go on with another session's conversation, fork that session, or sync copies of its messages.";
  return new HoldfastError("SYNC_FOREIGN", message, { session, owner, index });
}

/** `dropped`: so many recorded messages are not in the array, which is the first that this process syncs. */
export function syncRewrite(session: string, index: number, dropped?: number): HoldfastError {
  const what =
    dropped === undefined
      ? `messages[${index}] is not what session ${session} has recorded there, and nothing was recorded.`
      : `The array lacks ${dropped} of the messages that session ${session} has recorded, from messages[${index}] on, and it is the first that this process syncs: nothing was recorded.`;
  const message =
    `${what} What is recorded stays as it is. Load the conversation first ([...session.messages]) and keep the beginning of the array as it was, ` +
    'or sync with rewrite: "epoch" to make the array the conversation.';
  return new HoldfastError("SYNC_REWRITE", message, { session, index, ...defined({ dropped }) });
}
