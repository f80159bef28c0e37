import type { McpServer } from "@agentclientprotocol/sdk";
import { objectOf, type Params, stringOf } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { transcriptOf } from "../record/transcript.ts";
import { wordsOf } from "../record/words-of.ts";
import { RecordedHistory } from "./recorded-history.ts";
import type { DurableOptions, RestoredSession } from "./surface.ts";

/** Lets the agent rebuild its own context. Returns its answer for the client. */
export async function rebuildBy(
  rebuild: NonNullable<DurableOptions["restore"]>,
  session: RecordedSession,
  { cwd, additionalDirectories, mcpServers }: Params,
): Promise<Params> {
  const recorded = RecordedHistory.of(session);
  const { history, interruption } = await recorded.read();
  const restored: RestoredSession = {
    ...{ history, interruption, checkpoint: recorded.checkpointed },
    get transcript() {
      return transcriptOf(history as unknown as readonly Params[]);
    },
    cwd: stringOf(cwd) ?? process.cwd(),
    additionalDirectories: Array.isArray(additionalDirectories) ? (additionalDirectories as string[]) : [],
    mcpServers: Array.isArray(mcpServers) ? (mcpServers as McpServer[]) : [],
  };
  let answer: Params;
  try {
    answer = objectOf(await rebuild(session.id, restored)) ?? {};
  } catch (error) {
    const message = `The agent could not restore session ${session.id}: ${wordsOf(error)}. Its record is unchanged.`;
    throw new Error(message, { cause: error });
  }
  // From here on the agent knows it by the client's id.
  if (session.agentSession !== session.id) await session.movedTo(session.id);
  return answer;
}
