import { isHoldfastError, type ListQuery } from "holdfast";
import type { Chat } from "../contract/host.ts";
import type { Hosting } from "./hosting.ts";

/** How often a turn that was cut off is resumed by the server alone, counting all its resumes. A hand-over is none. */
export const TRIES_MAX = 3;

/**
 * After a restart: continues the turns that this server handed over, and finishes the interrupted turns of the sessions
 * that were started with "finish after restart". Gives up on a turn that was cut off and resumed three times. Every
 * other turn waits for a person, also one that the journal alone says was handed over.
 */
export async function finishInterrupted(hosting: Hosting): Promise<readonly string[]> {
  // Those that were handed over come first: clients wait for them.
  return [...(await finishAll(hosting, "paused")), ...(await finishAll(hosting, "interrupted"))];
}

async function finishAll(hosting: Hosting, status: NonNullable<ListQuery["status"]>): Promise<readonly string[]> {
  const { host } = hosting;
  const finished: string[] = [];
  let after: string | undefined;
  do {
    const page = await host.list({ status, limit: 1000, ...(after === undefined ? {} : { after }) });
    for (const { id, parent, unreadable } of page.sessions) {
      // The turn of a sub-agent is finished by its parent's.
      if (parent || unreadable || !(host.finishesAfterRestart(id) || host.handedOver(id) !== null)) continue;
      if (await finish(hosting, id)) finished.push(id);
    }
    after = page.next;
  } while (after !== undefined);
  return finished;
}

async function finish(hosting: Hosting, id: string): Promise<boolean> {
  try {
    return await hosting.use(id, async (chat) => {
      if (!isDue(hosting, chat)) return false;
      await chat.finish();
      return true;
    });
  } catch (error) {
    // One session must not keep the others from being finished; it is listed as interrupted.
    if (isHoldfastError(error) || (error instanceof Error && error.name === "CommandError")) return false;
    throw error;
  }
}

function isDue({ host }: Hosting, { id, state: { status, interruption, account } }: Chat): boolean {
  if (status !== "interrupted" || !interruption || account.can.finish !== true) return false;
  const isWanted = host.finishesAfterRestart(id) || host.handedOver(id) === interruption.turn;
  if (!isWanted || interruption.how.kind === "handed-over") return isWanted;
  // Somebody stopped it, it failed, or it sleeps: that is not what a restart should undo.
  return account.state === "interrupted" && interruption.resumes < TRIES_MAX;
}
