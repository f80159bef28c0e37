import { objectOf, type Params, stringOf } from "./message.ts";
import type { RecordedSession } from "./recorded-session.ts";

/** How an agent got its session back, the best first. */
export type Rung = "alive" | "resumed" | "loaded" | "new";

export interface Restored {
  readonly rung: Rung;
  /** For the editor: modes and options, if the agent has any. */
  readonly answer: Params;
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

/** Tries each way that the agent offers. Throws only if the agent cannot even begin a session. */
export async function restore({
  session,
  params,
  capabilities,
  isOpen,
  request,
  mute,
}: RestoreParts): Promise<Restored> {
  if (isOpen) return { rung: "alive", answer: {} };
  // Its folders, its MCP servers, and whatever else the editor says.
  const { sessionId: _, ...given } = params;
  const folder = { mcpServers: [], ...given };
  const old = { sessionId: session.agentSession, ...folder };
  const answered = (rung: Rung, answer: unknown): Restored => ({ rung, answer: objectOf(answer) ?? {} });

  if (objectOf(capabilities["sessionCapabilities"])?.["resume"] != null) {
    try {
      return answered("resumed", await request("session/resume", old));
    } catch {
      // It has forgotten the session: the next way.
    }
  }
  if (capabilities["loadSession"] === true) {
    const unmute = mute(session.agentSession);
    try {
      return answered("loaded", await request("session/load", old));
    } catch {
      // The same.
    } finally {
      await unmute();
    }
  }
  const { sessionId, ...answer } = objectOf(await request("session/new", folder)) ?? {};
  await session.movedTo(stringOf(sessionId) ?? session.id);
  return { rung: "new", answer };
}

/** For the person: what the agent still knows. Null if there is nothing to say. `isBack`: the editor was gone. */
export function restoredWords(rung: Rung, isBack: boolean): string | null {
  switch (rung) {
    case "alive":
      return isBack ? "Reattached: the agent kept running, and has everything." : null;
    case "resumed":
    case "loaded":
      return "Restored: the agent continues its own session. The conversation above is Holdfast's record of it.";
    case "new":
      return "Restored from Holdfast's record: this agent cannot load sessions, so it is told the conversation as text with your next message. It no longer has its hidden context, such as its reasoning and complete tool results.";
  }
}

/** For the person: a session goes on, and nobody has said with which MCP servers. */
export const SERVERS_UNKNOWN =
  "If the editor gave this session MCP servers, they are missing: they are never recorded. Load the session again to get them back.";
