import { dynamicTool, jsonSchema, type ToolSet, tool } from "ai";
import { z } from "zod";
import { type Content, call, type Step, text } from "./scripted-model.ts";

/** A run for each thing that a response can hold. */

const number = jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } });
export const add = tool({ inputSchema: number, execute: async ({ n }) => ({ sum: n + 1 }) });
export const say = tool({ inputSchema: number, execute: ({ n }) => `said ${n}` });
export const fails = tool({
  inputSchema: number,
  execute: async (): Promise<string> => {
    throw new TypeError("no such thing");
  },
});
const bytes = (words: string): string => Buffer.from(words).toString("base64");
const signed = { signer: { signature: "s1" } };

export interface Scenario {
  readonly steps: () => Step[];
  readonly tools?: () => ToolSet;
  readonly settings?: () => Record<string, unknown>;
  /** Calls whose tools ran. */
  readonly ran?: string[];
}

export const scenarios: Record<string, Scenario> = {
  "text alone": { steps: () => [[text("Hello there.")]] },
  "reasoning that is signed, several texts, sources and files": {
    steps: () => [
      [
        { type: "reasoning", text: "I think so.", providerMetadata: signed },
        text("One."),
        { type: "source", sourceType: "url", id: "s", url: "https://example.org" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: bytes("a picture") } },
        text(""),
        text("Two."),
        { ...(call("a", "add", { n: 1 }) as Extract<Content, { type: "tool-call" }>), providerMetadata: signed },
      ],
      [text("Done.")],
    ],
    ran: ["a"],
  },
  "parallel tools, with values of several kinds": {
    steps: () => [
      [text("Now."), call("a", "add", { n: 1 }), call("b", "say", { n: 2 }), call("c", "none"), call("d", "date")],
      [call("e", "add", { n: 5 })],
      [text("Done.")],
    ],
    tools: () => ({
      add,
      say,
      none: tool({ inputSchema: number, execute: async (): Promise<unknown> => undefined }),
      date: tool({ inputSchema: number, execute: async () => ({ at: new Date(0), skipped: undefined }) }),
    }),
    ran: ["a", "b", "c", "d", "e"],
  },
  "a tool that fails, and one that fails without an error": {
    steps: () => [[call("a", "fails"), call("b", "rejects"), call("c", "say", { n: 1 })], [text("Done.")]],
    tools: () => ({
      fails,
      say,
      rejects: tool({ inputSchema: number, execute: () => Promise.reject<string>(undefined) }),
    }),
    ran: ["a", "b", "c"],
  },
  "what the model is to see is the tool's own": {
    steps: () => [[call("a", "shot")], [text("Done.")]],
    tools: () => ({
      shot: tool({
        inputSchema: number,
        execute: async () => ({ huge: "x".repeat(100) }),
        toModelOutput: () => ({
          type: "content",
          value: [
            { type: "text", text: "a screenshot" },
            { type: "file", mediaType: "image/png", data: { type: "data", data: bytes("pixels") } },
          ],
        }),
      }),
    }),
    ran: ["a"],
  },
  "input that does not fit, a tool that does not exist, input that is no JSON": {
    steps: () => [
      [
        call("a", "strict", { n: "one" }),
        call("b", "constructor", { n: 1 }),
        { type: "tool-call", toolCallId: "c", toolName: "strict", input: "{no" },
        call("d", "strict", { n: 1 }),
      ],
      [text("Done.")],
    ],
    tools: () => ({ strict: tool({ inputSchema: z.object({ n: z.number() }), execute: async ({ n }) => n }) }),
    ran: ["d"],
  },
  "input that its schema changes": {
    steps: () => [[call("a", "date", { at: "2020-01-01" })], [text("Done.")]],
    tools: () => ({
      date: tool({
        inputSchema: z.object({ at: z.string().transform((at) => at.length), more: z.number().default(3) }),
        execute: async ({ at, more }) => at + more,
      }),
    }),
    ran: ["a"],
  },
  "input of which its schema makes what JSON cannot carry, and results that show such things": {
    steps: () => [[call("a", "late", { at: "2020-01-01", names: ["x"] })], [text("Done.")]],
    tools: () => ({
      late: tool({
        inputSchema: z.object({
          at: z.string().transform((at) => new Date(at)),
          names: z.array(z.string()).transform((names) => [new Set(names), undefined]),
        }),
        execute: async ({ at }) => at,
        toModelOutput: ({ output }) => ({
          type: "json",
          value: { at: output, of: new Map(), none: [undefined] } as never,
        }),
      }),
    }),
    ran: ["a"],
  },
  "input that is repaired, one that is refined, and a tool that is not active": {
    steps: () => [
      [call("a", "sum", { n: 1 }), call("b", "add", { n: "one" }), call("c", "say", { n: 2 }), call("d", "fails")],
      [text("Done.")],
    ],
    tools: () => ({ add: tool({ inputSchema: z.object({ n: z.number() }), execute: async ({ n }) => n }), say, fails }),
    settings: () => ({
      activeTools: ["add", "say"],
      repairToolCall: async ({ toolCall }: { toolCall: { toolName: string } }) =>
        toolCall.toolName === "fails" ? null : { ...toolCall, toolName: "add", input: '{"n":7}' },
      experimental_refineToolInput: { say: ({ n }: { n: number }) => ({ n: n + 1 }) },
    }),
    ran: ["a", "b", "c"],
  },
  "a result of the provider's own that comes a step later, and parts that only it knows": {
    steps: () => [
      [
        { type: "custom", kind: "maker.note", providerMetadata: signed },
        { type: "tool-call", toolCallId: "p", toolName: "web", input: "{}", providerExecuted: true },
        call("a", "add", { n: 1 }),
      ],
      [{ type: "tool-result", toolCallId: "p", toolName: "web", result: { hits: 3 } }, text("Done.")],
    ],
    tools: () => ({
      add,
      web: {
        type: "provider",
        isProviderExecuted: true,
        id: "maker.web",
        args: {},
        inputSchema: number,
        outputSchema: number,
        supportsDeferredResults: true,
      },
    }),
    ran: ["a"],
  },
  "tools of the provider's own, with a result and with an error": {
    steps: () => [
      [
        {
          type: "tool-call",
          toolCallId: "p",
          toolName: "web",
          input: '{"q":1}',
          providerExecuted: true,
          dynamic: true,
        },
        { type: "tool-result", toolCallId: "p", toolName: "web", result: { hits: 3 }, dynamic: true },
        { type: "tool-call", toolCallId: "q", toolName: "web", input: "{}", providerExecuted: true, dynamic: true },
        { type: "tool-result", toolCallId: "q", toolName: "web", result: { e: 1 }, isError: true, dynamic: true },
        call("a", "add", { n: 1 }),
      ],
      [text("Done.")],
    ],
    ran: ["a"],
  },
  "a tool of the provider's own that is shown in words of the application's, which know its input": {
    steps: () => [
      [
        { type: "tool-call", toolCallId: "p", toolName: "web", input: '{"n":7}', providerExecuted: true },
        { type: "tool-result", toolCallId: "p", toolName: "web", result: { hits: 3 } },
        call("a", "add", { n: 1 }),
      ],
      [text("Done.")],
    ],
    tools: () => ({
      add,
      web: {
        type: "provider",
        isProviderExecuted: true,
        id: "maker.web",
        args: {},
        inputSchema: number,
        outputSchema: number,
        toModelOutput: ({ toolCallId, input, output }: { toolCallId: string; input: unknown; output: unknown }) => ({
          type: "text",
          value: JSON.stringify({ toolCallId, input, output }),
        }),
      } as never,
    }),
    ran: ["a"],
  },
  "a dynamic tool": {
    steps: () => [[call("a", "any", { x: [1] })], [text("Done.")]],
    tools: () => ({ any: dynamicTool({ inputSchema: number, execute: async (input) => ({ got: input }) }) }),
    ran: ["a"],
  },
  "results that are streamed": {
    steps: () => [[call("a", "slow"), call("b", "hidden")], [text("Done.")]],
    tools: () => ({
      slow: tool({
        inputSchema: number,
        execute: async function* () {
          yield "half";
          yield "whole";
        },
      }),
      hidden: tool({
        inputSchema: number,
        execute: () =>
          (async function* () {
            yield { part: 1 };
            yield { part: 2 };
          })(),
      }),
    }),
    ran: ["a", "b"],
  },
  "approved and denied by a rule, without asking anybody": {
    steps: () => [
      [call("a", "add", { n: 1 }), call("b", "say", { n: 2 }), call("c", "fails"), call("d", "add", { n: 4 })],
      [text("Done.")],
    ],
    settings: () => ({
      toolApproval: {
        add: { type: "approved", reason: "harmless" },
        say: { type: "denied", reason: "too loud" },
        fails: () => "denied",
      },
    }),
    ran: ["a", "d"],
  },
};
