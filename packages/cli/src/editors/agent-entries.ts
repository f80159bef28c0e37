import { applyEdits, type Edit, findNodeAtLocation, modify, type Node, type ParseError, parseTree } from "jsonc-parser";
import { CommandError, EXIT } from "../exit.ts";

/** The setting of Zed and of JetBrains IDEs that has the agents. */
const AGENTS = "agent_servers";
/** Names of this program, in an editor's settings. */
const OURS = /(?:^|[\\/])(?:holdfast(?:\.(?:cmd|exe|js|mjs))?|bin\.(?:js|ts))$/i;

/** What would change in an editor's settings. */
export interface Change {
  readonly text: string;
  /** The agents that change. */
  readonly changed: readonly string[];
  /** The agents that stay as they are, and why. */
  readonly kept: readonly { readonly name: string; readonly why: string }[];
}

/** How an editor starts this program. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** Options of `wrap`. */
  readonly flags: readonly string[];
}

/** Puts `holdfast wrap --` in front of each agent's command, or of one agent's. Comments and layout stay. */
export function wrapAgents(text: string, launch: Launch, only: string | null): Change {
  return changeAgents(text, only, (entry) => {
    if (entry.wrap !== null) return "it is wrapped already";
    if (entry.command === null)
      return entry.type === null || entry.type === "custom"
        ? "it has no command"
        : `the editor runs it from its ${entry.type}, so there is no command to wrap`;
    if (isOurAgent(entry)) return "it is Holdfast's own agent, whose sessions survive already";
    return wrapEdits(text, entry, launch);
  });
}

/** Restores the commands that `wrapAgents` found, whatever else has changed since. */
export function unwrapAgents(text: string, only: string | null): Change {
  return changeAgents(text, only, (entry) => (entry.wrap === null ? "it is not wrapped" : unwrapEdits(text, entry)));
}

/** Adds an agent that is wrapped from the start. Throws CommandError USAGE if the name is taken. */
export function addAgent(
  text: string,
  { command, args, flags }: Launch,
  agent: { readonly name: string; readonly command: readonly string[]; readonly isTyped: boolean },
): Change {
  const { name } = agent;
  const tree = treeOf(text);
  if (tree && findNodeAtLocation(tree, [AGENTS, name]))
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      `There is already an agent "${name}". To wrap it, leave out the command; to add another one, use --name. Nothing was changed.`,
    );
  const value = {
    ...(agent.isTyped ? { type: "custom" } : {}),
    command,
    args: [...args, "wrap", ...flags, "--", ...agent.command],
  };
  const indent = /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
  const formattingOptions = {
    insertSpaces: !indent.startsWith("\t"),
    tabSize: indent.startsWith("\t") ? 1 : indent.length,
    eol: text.includes("\r\n") ? "\r\n" : "\n",
  };
  const start = text.trim() === "" ? `{}${formattingOptions.eol}` : text;
  return {
    text: applyEdits(start, modify(start, [AGENTS, name], value, { formattingOptions })),
    changed: [name],
    kept: [],
  };
}

interface Entry {
  readonly name: string;
  readonly type: string | null;
  /** Null if it is not a text. */
  readonly command: Node | null;
  /** Null if there are none. */
  readonly args: Node | null;
  /** Where the agent's own command is in `args`; null if the entry is not wrapped. */
  readonly wrap: number | null;
}

function changeAgents(text: string, only: string | null, change: (entry: Entry) => readonly Edit[] | string): Change {
  const tree = treeOf(text);
  const agents = tree ? findNodeAtLocation(tree, [AGENTS]) : undefined;
  if (agents && agents.type !== "object") throw invalid(`"${AGENTS}" is not an object`);
  const entries = (agents?.children ?? []).map(entryOf);
  const chosen = only === null ? entries : entries.filter(({ name }) => name === only);
  if (only !== null && chosen.length === 0) {
    const known = entries.length === 0 ? "there are none" : entries.map(({ name }) => `"${name}"`).join(", ");
    throw new CommandError(
      EXIT.notFound,
      "AGENT_NOT_CONFIGURED",
      `The editor has no agent "${only}": ${known}. Nothing was changed.`,
    );
  }
  const edits: Edit[] = [];
  const changed: string[] = [];
  const kept: { name: string; why: string }[] = [];
  for (const entry of chosen) {
    const found = change(entry);
    if (typeof found === "string") kept.push({ name: entry.name, why: found });
    else {
      edits.push(...found);
      changed.push(entry.name);
    }
  }
  return { text: applyEdits(text, edits), changed, kept };
}

/** Null if the text is empty. Throws CommandError CONFIG_INVALID. */
function treeOf(text: string): Node | null {
  if (text.trim() === "") return null;
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  if (errors[0]) throw invalid(`the settings are not valid JSON at line ${lineAt(text, errors[0].offset)}`);
  // Only comments.
  if (!tree) return null;
  if (tree.type !== "object") throw invalid("the settings are not an object");
  return tree;
}

function entryOf(property: Node): Entry {
  const [key, value] = property.children ?? [];
  const member = (name: string): Node | undefined =>
    value?.type === "object" ? findNodeAtLocation(value, [name]) : undefined;
  const command = member("command");
  const args = member("args");
  const type = member("type");
  const given = {
    name: String(key?.value),
    type: typeof type?.value === "string" ? type.value : null,
    command: command?.type === "string" ? command : null,
    args: args?.type === "array" && args.children?.every((one) => one.type === "string") ? args : null,
  };
  // With arguments of another kind it cannot be started, and is left alone.
  if (args && !given.args) return { ...given, command: null, wrap: null };
  return { ...given, wrap: wrapIn(given) };
}

function words({ command, args }: Pick<Entry, "command" | "args">): string[] {
  return command === null ? [] : [String(command.value), ...(args?.children ?? []).map((one) => String(one.value))];
}

/** `holdfast wrap … -- agent`, or the same with Node in front. */
function wrapIn(entry: Pick<Entry, "command" | "args">): number | null {
  const given = words(entry);
  const at = [1, 2].find((n) => given[n] === "wrap" && OURS.test(given[n - 1] ?? ""));
  const end = at === undefined ? -1 : given.indexOf("--", at);
  return end === -1 || end + 1 >= given.length ? null : end;
}

function isOurAgent(entry: Entry): boolean {
  const given = words(entry);
  return [1, 2].some((n) => given[n] === "acp" && OURS.test(given[n - 1] ?? ""));
}

function wrapEdits(text: string, { command, args }: Entry, launch: Launch): Edit[] {
  const { offset, length } = command!;
  // As it is written, with its escapes.
  const own = text.slice(offset, offset + length);
  const front = [...[...launch.args, "wrap", ...launch.flags, "--"].map((one) => JSON.stringify(one)), own].join(", ");
  const start: Edit = { offset, length, content: JSON.stringify(launch.command) };
  const [first] = args?.children ?? [];
  if (first) return [start, { offset: first.offset, length: 0, content: `${front}, ` }];
  if (args) return [start, { offset: args.offset + 1, length: 0, content: front }];
  return [start, { offset: offset + length, length: 0, content: `,${gapBefore(text, command!)}"args": [${front}]` }];
}

function unwrapEdits(text: string, { command, args, wrap }: Entry): Edit[] {
  const all = args!.children!;
  const own = all[wrap!]!;
  const start: Edit = {
    offset: command!.offset,
    length: command!.length,
    content: text.slice(own.offset, own.offset + own.length),
  };
  const next = all[wrap! + 1];
  if (next) return [start, { offset: all[0]!.offset, length: next.offset - all[0]!.offset, content: "" }];
  const end = command!.offset + command!.length;
  const added = `,${gapBefore(text, command!)}"args": [`;
  // Without arguments of its own the agent had no list, and it is as we wrote it.
  if (text.startsWith(added, end))
    return [start, { offset: end, length: args!.offset + args!.length - end, content: "" }];
  return [start, { offset: all[0]!.offset, length: own.offset + own.length - all[0]!.offset, content: "" }];
}

/** The white space before the member that this is the value of: a new line with its indentation, or a space. */
function gapBefore(text: string, value: Node): string {
  const key = value.parent!.offset;
  return /(?:\r?\n[ \t]*)?$/.exec(text.slice(0, key))?.[0] || " ";
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

function invalid(why: string): CommandError {
  return new CommandError(
    EXIT.usage,
    "CONFIG_INVALID",
    `The editor's file cannot be changed: ${why}. Nothing was changed.`,
  );
}
