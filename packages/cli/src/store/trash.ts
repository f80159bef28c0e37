import type { Store, TrashedSession } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { isMeant } from "../short-id.ts";
import { typedCommand } from "../typed-command.ts";
import { notAnId, oneOf, partOfId, placeOf, WHOLE_ID } from "./session-id.ts";

/**
 * The sessions in the trash, the last one deleted first. If an id was deleted several times, only the newest of them:
 * that is the one `restore` brings back.
 */
export async function trashIn(store: Store): Promise<TrashedSession[]> {
  const ids = new Set<string>();
  return (await store.trashed()).filter(({ id }) => !ids.has(id) && ids.add(id));
}

/**
 * The deleted session that a user means: by id, a part of one, or `latest` (`-`), the last one deleted that is not a
 * sub-agent's. Throws CommandError SESSION_NOT_FOUND, SESSION_AMBIGUOUS.
 */
export function findInTrash(trash: readonly TrashedSession[], given: string, store: Store): TrashedSession {
  const wanted = given.trim().toLowerCase();
  const place = `the trash of ${placeOf(store)}`;
  if (wanted === "latest" || wanted === "-") {
    const last = trash.find(({ parent }) => !parent) ?? trash[0];
    if (last) return last;
    throw notInTrash(`There are no sessions in ${place}.`);
  }
  if (WHOLE_ID.test(wanted)) {
    const found = trash.find(({ id }) => id === wanted);
    if (found) return found;
    throw notInTrash(
      `No session ${wanted} in ${place}. It was never deleted, was restored already, or is gone for good.`,
    );
  }
  if (partOfId(given) === null) throw notAnId(given);
  const found = trash.filter(({ id }) => isMeant(id, wanted));
  if (found.length > 0) return oneOf(found, wanted, place);
  throw notInTrash(`No session in ${place} starts or ends with "${wanted}".`);
}

/** The deleted sessions of its sub-agents, and of theirs. */
export function familyInTrash(trash: readonly TrashedSession[], id: string): string[] {
  const family = new Set([id]);
  // The set grows during the loop.
  for (const one of family) for (const { id: child, parent } of trash) if (parent?.session === one) family.add(child);
  family.delete(id);
  return [...family];
}

function notInTrash(message: string): CommandError {
  return new CommandError(
    EXIT.notFound,
    "SESSION_NOT_FOUND",
    `${message} "${typedCommand("trash")}" lists deleted sessions.`,
  );
}
