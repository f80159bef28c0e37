import { join } from "node:path";
import type { CallFacts, OpenCall, Reading } from "holdfast";
import { outputsFolder } from "../store/output-folders.ts";
import { ownStore } from "../tools/paths/own-store.ts";
import { isSecret } from "../tools/paths/secret-files.ts";
import { Trust } from "../trust/trust.ts";
import { changesSinceCall, type FolderPlace, rulesFor } from "./folder-notes.ts";

/**
 * What has changed since each open call of a session began, for people: the process does not have it open. Only in the
 * folder in which this user works with that session, whatever its journal says.
 */
export async function changesElsewhere(
  storeUrl: string,
  { id, calls, attributes }: Pick<Reading<unknown>, "id" | "calls" | "attributes">,
  trust: Trust = new Trust(storeUrl),
): Promise<Record<string, CallFacts>> {
  const noted = calls.filter(isInDoubt);
  const place = noted.length === 0 ? null : placeOf(storeUrl, id, attributes.notes, trust);
  if (place === null) return {};
  const facts: Record<string, CallFacts> = {};
  for (const call of noted) {
    const changes = await changesSinceCall(call, place);
    // Some servers reuse ids: what is known of one call must not be taken for the other's.
    if (changes && calls.filter((one) => one.id === call.id).length === 1) facts[call.id] = { changes };
  }
  return facts;
}

/** Null if this user has not worked with the session, or the store keeps nothing. */
export function placeOf(
  storeUrl: string,
  session: string,
  notes: FolderPlace["notes"],
  trust: Trust,
): FolderPlace | null {
  const all = outputsFolder(storeUrl);
  const { folder } = trust.of(session);
  if (all === null || folder === null) return null;
  const outputs = join(all, session);
  return { outputs, folder, rules: rulesFor(ownStore(storeUrl), outputs, isSecret), notes };
}

export function isInDoubt({ state, before }: OpenCall): boolean {
  return state === "outcome-unknown" && before !== undefined;
}
