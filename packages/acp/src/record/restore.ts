import { AgentEnded, AgentError } from "./holdfast-to-agent.ts";
import { objectOf, type Params, stringOf } from "./message.ts";
import type { RecordedSession } from "./recorded-session.ts";
import { wordsOf } from "./words-of.ts";

/** How an agent got its session back, the best first. */
export type Rung = "alive" | "resumed" | "loaded" | "new";

export interface Restored {
  readonly rung: Rung;
  /** For the editor: modes and options, if the agent has any. */
  readonly answer: Params;
  /** Why the agent could not load its own session, although it says that it can; null if it did, or cannot. */
  readonly failure: string | null;
}

export interface RestoreParts {
  readonly session: RecordedSession;
  /** Those of the editor's request. */
  readonly params: Params;
  readonly capabilities: Params;
  /** The agent has it open. */
  readonly isOpen: boolean;
  readonly request: (method: string, params: Params) => Promise<unknown>;
  /** Drops the agent's own replay. The function that it returns ends that. */
  readonly mute: (agentSession: string) => () => Promise<void>;
}

/**
 * Tries each way that the agent offers. Throws if the agent cannot even begin a session, if it ends meanwhile, or if
 * the person has to sign in first: then the agent may still know the session.
 */
export async function restore({
  session,
  params,
  capabilities,
  isOpen,
  request,
  mute,
}: RestoreParts): Promise<Restored> {
  if (isOpen) return { rung: "alive", answer: {}, failure: null };
  // Its folders, its MCP servers, and whatever else the editor says.
  const { sessionId: _, ...given } = params;
  const folder = { mcpServers: [], ...given };
  const old = { sessionId: session.agentSession, ...folder };
  let failure: string | null = null;
  const attempt = async (method: string): Promise<Params | null> => {
    try {
      return objectOf(await request(method, old)) ?? {};
    } catch (error) {
      if (error instanceof AgentEnded || (error instanceof AgentError && error.isAuthRequired)) throw error;
      // It has forgotten the session: the next way.
      failure = wordsOf(error);
      return null;
    }
  };

  if (objectOf(capabilities["sessionCapabilities"])?.["resume"] != null) {
    const answer = await attempt("session/resume");
    if (answer) return { rung: "resumed", answer, failure: null };
  }
  if (capabilities["loadSession"] === true) {
    const unmute = mute(session.agentSession);
    try {
      const answer = await attempt("session/load");
      if (answer) return { rung: "loaded", answer, failure: null };
    } finally {
      await unmute();
    }
  }
  const { sessionId, ...answer } = objectOf(await request("session/new", folder)) ?? {};
  await session.movedTo(stringOf(sessionId) ?? session.id);
  return { rung: "new", answer, failure };
}

/** For the person: what the agent still knows. Null if there is nothing to say. `isBack`: the editor was gone. */
export function restoredWords({ rung, failure }: Pick<Restored, "rung" | "failure">, isBack: boolean): string | null {
  switch (rung) {
    case "alive":
      return isBack ? "Reattached: the agent kept running, and has everything." : null;
    case "resumed":
    case "loaded":
      return "Restored: the agent continues its own session. The conversation above is Holdfast's record of it.";
    case "new":
      return `Restored from Holdfast's record: ${
        failure === null
          ? "this agent cannot load sessions"
          : `the agent could not load its own session (${lineIn(failure)})`
      }, so it is told the conversation as text with your next message. It no longer has its hidden context, such as its reasoning and complete tool results.`;
  }
}

/** What an agent says about its failure is shown in one line, and not at any length. */
function lineIn(words: string): string {
  const line = words.replaceAll(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 200).toWellFormed()}…` : line;
}

/** For the person: a session goes on, and nobody has said with which MCP servers. */
export const SERVERS_UNKNOWN =
  "If the editor gave this session MCP servers, they are missing: they are never recorded. Load the session again to get them back.";
