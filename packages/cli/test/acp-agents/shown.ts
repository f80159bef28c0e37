import type { RequestPermissionRequest, SessionUpdate } from "@agentclientprotocol/sdk/unstable";

export interface ShownTool {
  readonly title: string;
  readonly status: string;
  readonly text: string;
}

/** What an editor shows of a session. */
export interface Shown {
  readonly prompts: readonly string[];
  /** The agent's text, in one piece: how it is cut into chunks means nothing. */
  readonly text: string;
  readonly thoughts: string;
  readonly tools: readonly ShownTool[];
}

/** The line of the protocol, as far as it matters here. */
interface Line {
  readonly method?: string;
  readonly params?: { readonly sessionId?: string } & Partial<RequestPermissionRequest> & { update?: SessionUpdate };
}

/** Folds the lines that an editor got. Agents use ids again: a `tool_call` after the end of a call is another one. */
export function shownBy(lines: readonly string[], session: string): Shown {
  const prompts: string[] = [];
  const tools: { id: string; title: string; status: string; text: string }[] = [];
  let [text, thoughts] = ["", ""];
  const toolOf = (id: string, isNew: boolean) => {
    const known = tools.findLast((one) => one.id === id && !(isNew && isEnded(one.status)));
    if (known) return known;
    const made = { id, title: "", status: "", text: "" };
    tools.push(made);
    return made;
  };
  for (const line of lines) {
    const { method, params } = messageOf(line);
    if (params?.sessionId !== session) continue;
    if (method === "session/request_permission" && params.toolCall) {
      const tool = toolOf(params.toolCall.toolCallId, true);
      tool.title ||= params.toolCall.title ?? "";
      tool.status ||= "pending";
    }
    const { update } = params;
    if (method !== "session/update" || !update) continue;
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        if (update.content.type === "text") prompts.push(update.content.text);
        break;
      case "agent_message_chunk":
        if (update.content.type === "text") text += update.content.text;
        break;
      case "agent_thought_chunk":
        if (update.content.type === "text") thoughts += update.content.text;
        break;
      case "tool_call":
      case "tool_call_update": {
        const tool = toolOf(update.toolCallId, update.sessionUpdate === "tool_call");
        tool.title = update.title ?? tool.title;
        tool.status = update.status ?? tool.status;
        const said = update.content?.flatMap((one) =>
          one.type === "content" && one.content.type === "text" ? [one.content.text] : [],
        );
        tool.text = said?.join("\n") ?? tool.text;
        break;
      }
      default:
    }
  }
  return { prompts, text, thoughts, tools: tools.map(({ id: _, ...tool }) => tool) };
}

export function isEnded(status: string): boolean {
  return status === "completed" || status === "failed";
}

export function messageOf(line: string): Line {
  try {
    return JSON.parse(line) as Line;
  } catch {
    return {};
  }
}
