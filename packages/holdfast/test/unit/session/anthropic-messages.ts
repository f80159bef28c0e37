import type { AnthropicMessage } from "holdfast";

/** Messages for tests of sessions, as short as they can be. */

export const user = (text: string): AnthropicMessage => ({ role: "user", content: text });

export const says = (text: string): AnthropicMessage => ({ role: "assistant", content: [{ type: "text", text }] });

/** One call of the tool `work` for each id. */
export const calls = (...ids: string[]): AnthropicMessage => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: { id } })),
});
