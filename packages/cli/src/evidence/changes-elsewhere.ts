import { join } from "node:path";
import type { CallFacts, OpenCall, Reading } from "holdfast";
import { outputsFolder } from "../store/output-folders.ts";
import { ownStore } from "../tools/paths/own-store.ts";
import { isSecret } from "../tools/paths/secret-files.ts";
import { Trust } from "../trust/trust.ts";
import { changesSinceCall, rulesFor } from "./folder-notes.ts";

/**
 * What has changed since each open call of a session began, for people: the process does not have it open. Only in the
 * folder in which this user works with that session, whatever its journal says.
 */
export async function changesElsewhere(
  storeUrl: string,
  { id, calls }: Pick<Reading<unknown>, "id" | "calls">,
  trust: Trust = new Trust(storeUrl),
): Promise<Record<string, CallFacts>> {
  const all = outputsFolder(storeUrl);
  const noted = calls.filter(isInDoubt);
  const { folder } = trust.of(id);
  if (all === null || folder === null || noted.length === 0) return {};
  const outputs = join(all, id);
  const place = { outputs, folder, rules: rulesFor(ownStore(storeUrl), outputs, isSecret) };
  const facts: Record<string, CallFacts> = {};
  for (const call of noted) {
    const changes = await changesSinceCall(call, place);
    // Some servers reuse ids: what is known of one call must not be taken for the other's.
    if (changes && calls.filter((one) => one.id === call.id).length === 1) facts[call.id] = { changes };
  }
  return facts;
}

function isInDoubt({ state, before }: OpenCall): boolean {
  return state === "outcome-unknown" && before !== undefined;
}
