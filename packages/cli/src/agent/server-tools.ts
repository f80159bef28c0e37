import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema, type ToolSet, tool } from "ai";
import { fitTools } from "../mcp/catalog.ts";
import { notRun } from "../mcp/outcome-words.ts";
import { type ResultImage, readResult, type ServerResult } from "../mcp/read-result.ts";
import type { McpServers } from "../mcp/servers.ts";
import { isServerRule, serverOfRule } from "../mcp-settings/tool-names.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { joinEnds, RESULT_CHARS_MAX } from "../tools/results/result-text.ts";
import { safeName } from "../tools/shell/output-files.ts";

export interface ServerToolContext {
  readonly model: Pick<ResolvedModel, "provider" | "windowTokens">;
  /** The folder for complete outputs. */
  readonly outputs: string;
  /** Receives what a server reports while it works, for display. */
  readonly output: (call: string, text: string) => void;
  /** Tools were left out, because the model's window is too small for them. */
  readonly leftOut: (count: number) => void;
}

export type ServerSet = Pick<McpServers, "tools" | "call">;

/** The tools of several sets of servers, whose names differ. */
export function joinServers(sets: readonly McpServers[]): ServerSet {
  return {
    get tools() {
      return sets.flatMap(({ tools }) => tools);
    },
    call: (tool, ...rest) => {
      const owner = sets.find(({ tools }) => tools.flat().some(({ name }) => name === tool.name));
      return (owner ?? sets[0]!).call(tool, ...rest);
    },
  };
}

/** Providers whose models see images in the results of tools. Others would get megabytes of base64 as text. */
const SEEING: ReadonlySet<string> = new Set(["anthropic", "openai", "google"]);

/**
 * The tools of the user's MCP servers. The same rules apply to them as to the agent's own tools, and their starts and
 * outcomes are recorded in the same way. Whether one may run twice is unknown, whatever its server says: never.
 */
export function makeServerTools(servers: ServerSet, context: ServerToolContext): ToolSet {
  const { provider, windowTokens } = context.model;
  // A quarter of the window, at four characters for each token.
  const { fitting, leftOut } = fitTools(servers.tools, windowTokens);
  if (leftOut > 0) context.leftOut(leftOut);
  const images = new WeakMap<object, readonly ResultImage[]>();
  const tools: ToolSet = {};
  for (const one of servers.tools.flat()) {
    if (!fitting.has(one)) continue;
    tools[one.name] = tool({
      description: one.description,
      inputSchema: jsonSchema<unknown>(one.inputSchema as Parameters<typeof jsonSchema>[0]),
      execute: async (
        input: unknown,
        { toolCallId, abortSignal },
      ): Promise<string | { text: string; images: string[] }> => {
        const progress = (text: string): void => context.output(toolCallId, text);
        const given = await servers.call(one, input, { signal: abortSignal, progress });
        const result = readResult(given, SEEING.has(provider));
        const text = bounded(result, context.outputs, toolCallId);
        if (result.isError) throw new Error(text);
        if (result.images.length === 0) return text;
        // The journal holds each image once, in what the model sees.
        const value = { text, images: result.images.map(({ mediaType }) => mediaType) };
        images.set(value, result.images);
        return value;
      },
      toModelOutput: ({ output }) => {
        if (typeof output === "string") return { type: "text", value: output };
        const seen = (images.get(output) ?? []).map(({ mediaType, data }) => ({
          ...{ type: "file" as const, mediaType },
          data: { type: "data" as const, data },
        }));
        const said = output.text === "" ? [] : [{ type: "text" as const, text: output.text }];
        return { type: "content", value: [...said, ...seen] };
      },
    }) as ToolSet[string];
  }
  return tools;
}

/**
 * Stands in for tools that open calls name and that no server offers any more. Without them, the SDK fails on a call
 * that was approved after a restart, and with it the turn.
 */
export function makeMissingTools(calls: readonly { readonly name: string }[], tools: ToolSet): ToolSet {
  const missing = calls.filter(({ name }) => isServerRule(name) && !Object.hasOwn(tools, name));
  return Object.fromEntries(
    missing.map(({ name }) => {
      const why = "it is not configured, has not started, or no longer offers this tool";
      const execute = (): Promise<string> => Promise.reject(notRun(serverOfRule(name) ?? name, why));
      const inputSchema = jsonSchema<unknown>({ type: "object", additionalProperties: true });
      return [name, tool({ description: "Not available now.", inputSchema, execute }) as ToolSet[string]];
    }),
  );
}

/** A long text is shortened to its start and end, and saved in full where the agent may read it. */
function bounded({ text }: ServerResult, outputs: string, call: string): string {
  if (text.length <= RESULT_CHARS_MAX) return text;
  const half = Math.floor(RESULT_CHARS_MAX / 2);
  const leftOut = text.length - 2 * half;
  return joinEnds(text.slice(0, half), text.slice(-half), leftOut, "characters", saved(text, outputs, call));
}

function saved(text: string, outputs: string, call: string): string {
  // Servers reuse call ids (R9).
  const file = join(outputs, `${safeName(call)}.${randomBytes(4).toString("hex")}.txt`);
  try {
    mkdirSync(outputs, { recursive: true, mode: 0o700 });
    writeFileSync(file, text, { flag: "wx", mode: 0o600 });
    return `the full result is in ${file}`;
  } catch (error) {
    // The tool has run: a full disk must not make its result disappear.
    if (error instanceof Error && "code" in error) return "the full result could not be saved";
    throw error;
  }
}
