import type { CallFacts, Reading } from "holdfast";
import { APP } from "../store/app.ts";
import { existingOutputs } from "../store/output-folders.ts";
import { commandFacts, findCommand, isLookedFor } from "../tools/shell/surviving-commands.ts";
import { Trust } from "../trust/trust.ts";
import { changesElsewhere } from "./changes-elsewhere.ts";

type Read = Pick<Reading<unknown>, "id" | "calls" | "attributes" | "state">;

/** A turn can leave any number of calls open. Of the others, only what the journal says is known. */
const COMMANDS_MAX = 100;

/** What is known of the open calls of a session that this process does not have open. Reads, and changes nothing. */
export async function factsElsewhere(
  storeUrl: string,
  reading: Read,
  trust?: Trust,
): Promise<Record<string, CallFacts>> {
  const facts = { ...(await permissionElsewhere(reading)), ...(await commandsElsewhere(storeUrl, reading)) };
  for (const [id, changes] of Object.entries(await changesElsewhere(storeUrl, reading, trust)))
    facts[id] = { ...facts[id], ...changes };
  return facts;
}

/** Which calls of another agent for editors have no permission yet. */
async function permissionElsewhere({ attributes: { dialect, notes } }: Read): Promise<Record<string, CallFacts>> {
  if (dialect !== "acp") return {};
  const { UNAPPROVED, unapprovedFacts } = await import("@holdfast/acp/internal/wrap");
  return unapprovedFacts(notes[UNAPPROVED]);
}

/** Finds the commands that outlived their agent: each is running, has ended, or never began (R7b). */
export async function commandsElsewhere(
  storeUrl: string,
  { id: session, calls, attributes, state }: Read,
): Promise<Record<string, CallFacts>> {
  // While its turn runs, its agent is there, and records how they end.
  if (state === "running") return {};
  const looked = calls.filter(
    (call) =>
      isLookedFor(call, attributes.app === APP) &&
      // Some servers reuse ids: what is known of one call must not be taken for the other's.
      calls.filter((one) => one.id === call.id).length === 1,
  );
  const outputs = looked.length === 0 ? null : existingOutputs(storeUrl, session);
  if (outputs === null) return {};
  // Not one that was read before: the agent may have started commands since.
  const trust = new Trust(storeUrl).of(session);
  const found = await Promise.all(
    looked.slice(0, COMMANDS_MAX).map(async ({ id, process }) => {
      const isOurs = process === undefined || trust.hasStarted(process);
      return [id, commandFacts(await findCommand(outputs, id, process, { isOurs }))] as const;
    }),
  );
  return Object.fromEntries(found);
}
