import fc from "fast-check";

/** The names of members that dialects look at, and the values that mean something to them. */
const NAMES = [
  ...["role", "type", "content", "parts", "text", "thinking", "thought", "refusal", "name", "id", "call_id", "status"],
  ...["tool_use_id", "tool_call_id", "tool_calls", "function", "function_call", "arguments", "input", "custom"],
  ...["toolCallId", "toolName", "output", "value", "approvalId", "approved", "providerExecuted", "isAutomatic"],
  ...["functionCall", "functionResponse", "toolCall", "toolResponse", "executableCode", "codeExecutionResult", "args"],
  ...["response", "inlineData", "fileData", "data", "mimeType", "source", "media_type", "image_url", "file", "url"],
  ...["sessionUpdate", "update", "prompt", "rawInput", "rawOutput", "title", "entries", "resource", "blob", "uri"],
  ...["reasoning_content", "summary", "error", "is_error", "result", "results", "action", "approve", "input_audio"],
  ...["toString", "valueOf", "toJSON", "length"],
];

const WORDS = [
  ...["user", "assistant", "tool", "system", "model", "developer", "function", "message", "text", "thinking"],
  ...["reasoning", "image", "document", "file", "tool_use", "server_tool_use", "tool_result", "web_search_tool_result"],
  ...["tool-call", "tool-result", "tool-approval-request", "tool-approval-response", "json", "error-text", "content"],
  ...["execution-denied", "function_call", "function_call_output", "custom_tool_call", "web_search_call", "mcp_call"],
  ...["mcp_approval_request", "mcp_approval_response", "output_text", "input_text", "refusal", "input_image"],
  ...["image_generation_call", "shell_call", "shell_call_output", "tool_call", "tool_call_update", "plan", "diff"],
  ...["agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "completed", "failed", "in_progress"],
  ...["call_1", "call_2", "read", "", "iVBORw0KGgo=", "data:image/png;base64,iVBO", "https://a.example/b.png"],
  ...['{"a":1}', '{"a', "Error: no", "__proto__", "half \ud83d", "resource", "image_url", "input_audio", "url"],
];

/** Messages that fit no dialect, made of what all of them look at: deeper than chance would bring it together. */
export const nonsense: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 6, arbitrary: fc.constantFrom(...WORDS) },
    { weight: 1, arbitrary: fc.constantFrom(true, false, null, undefined, 7) },
    { weight: 5, arbitrary: fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 6 }) },
    { weight: 3, arbitrary: fc.array(tie("value"), { maxLength: 4 }) },
  ),
  /** More like a message: what is said has a type. */
  part: fc
    .tuple(fc.constantFrom(...WORDS), fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 6 }))
    .map(([type, rest]) => ({ type, ...rest })),
  message: fc.oneof(
    tie("value"),
    tie("part"),
    fc.record({
      role: fc.constantFrom("user", "assistant", "tool", "model", "system"),
      content: fc.array(fc.oneof(tie("part"), tie("value")), { maxLength: 5 }),
    }),
    fc.record({
      role: fc.constantFrom("user", "model"),
      parts: fc.array(fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 4 }), { maxLength: 5 }),
    }),
    fc
      .tuple(
        fc.constantFrom("tool_call", "tool_call_update", "plan", "agent_message_chunk"),
        fc.dictionary(fc.constantFrom(...NAMES), tie("value"), { maxKeys: 6 }),
      )
      .map(([sessionUpdate, rest]) => ({ toolCallId: "call_1", ...rest, sessionUpdate })),
  ),
})).message;
