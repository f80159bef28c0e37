import { createHash } from "node:crypto";
import { PREFIX } from "../mcp-settings/tool-names.ts";
import { onlyVisible, plainLine } from "../terminal/plain.ts";
import type { Hide } from "./hide-secrets.ts";

/** A server's tool, as the model is offered it. */
export interface ServerTool {
  /** `mcp__<server>__<tool>` */
  readonly name: string;
  /** The server's own name for it. */
  readonly tool: string;
  readonly description: string;
  readonly inputSchema: { readonly type: "object"; readonly [member: string]: unknown };
  /** Every request carries this many characters for it. */
  readonly chars: number;
}

export interface Catalog {
  readonly tools: readonly ServerTool[];
  /** Why tools were left out, for people. */
  readonly problems: readonly string[];
}

/** OpenAI accepts 128 tools; the agent has seven. */
export const TOOLS_MAX = 120;
const DESCRIPTION_CHARS_MAX = 2000;
const SCHEMA_CHARS_MAX = 16_000;
const SHOWN_NAMES_MAX = 3;

/**
 * The tools that can be offered, of those that a server lists. The list comes from outside: a tool that is malformed,
 * or that a provider would refuse a whole request for, is left out and named. `hide` takes the server's keys out of
 * what it says.
 */
export function readCatalog(
  server: string,
  listed: readonly unknown[],
  wanted?: readonly string[],
  hide: Hide = (value) => value,
): Catalog {
  const leftOut = new Map<string, string[]>();
  const leave = (why: string, tool: string): void => {
    const names = leftOut.get(why) ?? [];
    leftOut.set(why, names);
    names.push(tool);
  };
  const found = new Map<string, ServerTool>();
  // A name that is used as it is comes first: another tool must not take its place.
  const inOrder = listed
    .map((given) => ({ given, tool: nameOf(given) }))
    .sort((a, b) => Number(isChanged(server, a.tool)) - Number(isChanged(server, b.tool)));
  let tooMany = 0;
  for (const { given, tool } of inOrder) {
    if (found.size >= TOOLS_MAX) tooMany += 1;
    else if (tool === null) leave("has no name", "?");
    else if (wanted && !wanted.includes(tool)) continue;
    else {
      const read = readTool(server, tool, given as Record<string, unknown>, hide);
      if (typeof read === "string") leave(read, tool);
      else if (found.has(read.name)) leave("has the same name as another tool", tool);
      else found.set(read.name, read);
    }
  }
  for (const tool of wanted ?? [])
    if (!listed.some((given) => nameOf(given) === tool)) leave("is not offered by the server", tool);
  const problems = [...leftOut].map(([why, names]) => `${namesWords(names)} left out: ${why}`);
  if (tooMany > 0)
    problems.push(
      `${tooMany} of ${listed.length} tools left out: models accept about ${TOOLS_MAX}. Choose them with "tools" in the configuration`,
    );
  return { tools: [...found.values()], problems: hide(problems) };
}

/** What every provider accepts as the name of a tool. */
const NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;

/**
 * The name of a server's tool for the model, the rules and the user. A name that providers refuse, or that could look
 * like another one on a screen, has its characters replaced and a digest added. It depends on nothing but these two
 * names: an approval that is pending across a restart still means the same tool.
 */
export function toolName(server: string, tool: string): string {
  const name = `${PREFIX}${server}__${tool}`;
  if (/^[A-Za-z0-9_-]+$/.test(tool) && name.length <= NAME_CHARS_MAX) return name;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, HASH_CHARS);
  const room = NAME_CHARS_MAX - PREFIX.length - server.length - 2 - HASH_CHARS - 1;
  return `${PREFIX}${server}__${tool.slice(0, room).replaceAll(/[^A-Za-z0-9_-]/gu, "_")}_${digest}`;
}

/** As many tools as fit, taken from each server in turn, so that one with many does not displace the others. */
export function fitTools(
  servers: readonly (readonly ServerTool[])[],
  charsMax: number,
): { readonly fitting: ReadonlySet<ServerTool>; readonly leftOut: number } {
  const fitting = new Set<ServerTool>();
  let chars = 0;
  let leftOut = 0;
  const most = Math.max(0, ...servers.map(({ length }) => length));
  for (let at = 0; at < most; at++) {
    for (const tools of servers) {
      const tool = tools[at];
      if (!tool) continue;
      if (fitting.size >= TOOLS_MAX || chars + tool.chars > charsMax) leftOut += 1;
      else {
        fitting.add(tool);
        chars += tool.chars;
      }
    }
  }
  return { fitting, leftOut };
}

function nameOf(given: unknown): string | null {
  const name = typeof given === "object" && given !== null ? (given as { name?: unknown }).name : undefined;
  return typeof name === "string" && name !== "" ? name : null;
}

function isChanged(server: string, tool: string | null): boolean {
  return tool === null || toolName(server, tool) !== `mcp__${server}__${tool}`;
}

/** The tool, or why it cannot be offered. */
function readTool(server: string, tool: string, given: Record<string, unknown>, hide: Hide): ServerTool | string {
  const inputSchema = readSchema(given["inputSchema"], hide);
  if (typeof inputSchema === "string") return inputSchema;
  const said = typeof given["description"] === "string" ? given["description"] : "";
  const description = `${cleaned(hide(said)) || "(no description)"}\n[A tool of the MCP server "${server}".]`;
  const name = toolName(server, tool);
  const chars = name.length + description.length + JSON.stringify(inputSchema).length;
  return { name, tool, description, inputSchema, chars };
}

/** Members that some providers refuse at the top of a schema. The server checks the input itself. */
const TOP_ONLY = ["$schema", "oneOf", "anyOf", "allOf", "not", "enum", "if", "then", "else"];

function readSchema(given: unknown, hide: Hide): ServerTool["inputSchema"] | string {
  if (typeof given !== "object" || given === null || (given as { type?: unknown }).type !== "object")
    return "its input is not described as an object";
  const text = JSON.stringify(given);
  if (text.length > SCHEMA_CHARS_MAX)
    return `the description of its input is longer than ${SCHEMA_CHARS_MAX} characters`;
  const schema = JSON.parse(text, (key, value: unknown) =>
    (key === "description" || key === "title") && typeof value === "string" ? cleaned(hide(value)) : value,
  ) as Record<string, unknown>;
  for (const member of TOP_ONLY) delete schema[member];
  const { properties = {} } = schema;
  if (typeof properties !== "object" || properties === null || Array.isArray(properties))
    return "its input is not described as an object";
  if (!Object.keys(properties).every((key) => /^[\w.-]{1,64}$/.test(key)))
    return "a member of its input has a name that providers refuse";
  return { ...schema, properties, type: "object" };
}

/** What the model reads is what a person can see. */
function cleaned(text: string): string {
  const seen = onlyVisible(text.slice(0, DESCRIPTION_CHARS_MAX * 2)).trim();
  if (seen.length <= DESCRIPTION_CHARS_MAX) return seen;
  return `${seen.slice(0, DESCRIPTION_CHARS_MAX).replace(/[\uD800-\uDBFF]$/u, "")}…`;
}

function namesWords(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN_NAMES_MAX).map((name) => `"${plainLine(name.slice(0, 80)).slice(0, 60)}"`);
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
