import type { AcpOptions } from "../acp.ts";
import type { Json } from "../violation.ts";
import type { Example } from "./example.ts";

const text = (words: string) => ({ type: "text", text: words });
const prompt = (...blocks: readonly Json[]) => ({ sessionId: "s", prompt: blocks });
const update = (sessionUpdate: string, fields: Json) => ({ sessionId: "s", update: { sessionUpdate, ...fields } });
const said = (words: string, messageId?: string) =>
  update(
    "agent_message_chunk",
    messageId === undefined ? { content: text(words) } : { content: text(words), messageId },
  );
const call = (toolCallId: string, more: Json = {}) => update("tool_call", { toolCallId, title: "Read", ...more });
const change = (toolCallId: string, status: string) => update("tool_call_update", { toolCallId, status });

/** A prompt with an image, a thought, two calls, a plan, an answer in two chunks, a second prompt as a chunk. */
export const acpTranscript: readonly Json[] = [
  prompt(text("Read both files."), { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }),
  update("agent_thought_chunk", { content: text("Two files."), messageId: "t1" }),
  call("c1", { kind: "read" }),
  call("c2", { status: "in_progress" }),
  change("c1", "in_progress"),
  update("tool_call_update", {
    toolCallId: "c1",
    status: "completed",
    content: [{ type: "content", content: text("ok") }],
  }),
  change("c2", "failed"),
  update("plan", { entries: [] }),
  said("I read ", "m1"),
  said("them.", "m1"),
  update("user_message_chunk", { content: text("Thanks."), messageId: "u2" }),
  said("Welcome.", "m2"),
];

const hello = prompt(text("Hello."));

export const acpExamples: readonly Example<AcpOptions>[] = [
  {
    rule: "acp-1",
    accepts: { name: "a call and its update", request: [hello, call("a"), change("a", "completed")] },
    refuses: [
      { name: "an update of an unknown call", request: [hello, change("a", "completed")] },
      {
        name: "one id for two calls",
        request: [hello, call("a"), change("a", "failed"), call("a"), change("a", "failed")],
      },
    ],
  },
  {
    rule: "acp-2",
    accepts: { name: "a call that runs, in a cut transcript", request: [hello, call("a")], options: { running: true } },
    refuses: [
      { name: "a call left open at the end", request: [hello, call("a")] },
      { name: "a call left open before a prompt", request: [hello, call("a"), hello] },
      {
        name: "a call that runs again after its end",
        request: [hello, call("a"), change("a", "failed"), change("a", "in_progress")],
      },
    ],
  },
  {
    rule: "acp-3",
    accepts: {
      name: "a link and a text",
      request: [prompt(text("See."), { type: "resource_link", name: "a.txt", uri: "file:///a.txt" })],
    },
    refuses: [
      { name: "an empty prompt", request: [prompt()] },
      { name: "an image without its type", request: [prompt({ type: "image", data: "iVBORw0KGgo=" })] },
      { name: "a block of another protocol", request: [prompt({ type: "input_text", text: "Hello." })] },
      {
        name: "bare text as tool content",
        request: [hello, call("a", { status: "completed", content: [text("ok")] })],
      },
    ],
  },
  {
    rule: "acp-4",
    accepts: { name: "two messages, one after the other", request: [hello, said("Hi.", "1"), said("So.", "2")] },
    refuses: [
      { name: "the agent speaks first", request: [said("Hi.")] },
      { name: "two messages mixed", request: [hello, said("Hi.", "1"), said("So.", "2"), said("And.", "1")] },
      {
        name: "one id for the user's and the agent's message",
        request: [update("user_message_chunk", { content: text("Hello."), messageId: "1" }), said("Hi.", "1")],
      },
    ],
  },
  {
    rule: "acp-shape",
    accepts: { name: "updates without their envelope", request: [hello, said("Hi.").update] },
    refuses: [
      { name: "an unknown update", request: [hello, update("agent_message", { content: text("Hi.") })] },
      { name: "two sessions", request: [hello, { ...said("Hi."), sessionId: "other" }] },
      { name: "an unknown status", request: [hello, call("a"), change("a", "cancelled"), change("a", "failed")] },
      { name: "a call without title", request: [hello, call("a", { title: undefined, status: "completed" })] },
    ],
  },
  {
    rule: "acp-unicode",
    accepts: { name: "a whole character of two units", request: [prompt(text("😀"))] },
    refuses: [
      { name: "half a character in a prompt", request: [prompt(text("\ud83d"))] },
      { name: "the other half in an answer", request: [hello, said("\ude00")] },
      { name: "a NUL", request: [prompt(text("a\0b"))] },
    ],
  },
];
