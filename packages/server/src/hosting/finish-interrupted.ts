import { isHoldfastError } from "holdfast";
import type { Hosting } from "./hosting.ts";

/** How often a turn is resumed by the server alone, counting all its resumes. */
export const TRIES_MAX = 3;

/**
 * After a restart: finishes the interrupted turns of the sessions that were started with "finish after restart", and
 * gives up on a turn that was resumed three times. Every other interrupted turn waits for a person.
 */
export async function finishInterrupted(hosting: Hosting): Promise<readonly string[]> {
  const { host } = hosting;
  const finished: string[] = [];
  let after: string | undefined;
  do {
    const page = await host.list({ status: "interrupted", limit: 1000, ...(after === undefined ? {} : { after }) });
    for (const { id, parent, unreadable } of page.sessions) {
      // The turn of a sub-agent is finished by its parent's.
      if (parent || unreadable || !host.finishesAfterRestart(id)) continue;
      if (await finish(hosting, id)) finished.push(id);
    }
    after = page.next;
  } while (after !== undefined);
  return finished;
}

async function finish(hosting: Hosting, id: string): Promise<boolean> {
  try {
    return await hosting.use(id, async (chat) => {
      const { status, interruption, account } = chat.state;
      if (status !== "interrupted" || !interruption || interruption.resumes >= TRIES_MAX) return false;
      // Somebody stopped it, or it failed: that is not what a restart should undo.
      if (account.state !== "interrupted" || account.can.finish !== true) return false;
      await chat.finish();
      return true;
    });
  } catch (error) {
    // One session must not keep the others from being finished; it is listed as interrupted.
    if (isHoldfastError(error) || (error instanceof Error && error.name === "CommandError")) return false;
    throw error;
  }
}
