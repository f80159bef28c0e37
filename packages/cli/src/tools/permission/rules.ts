import { sep } from "node:path";
import { isServerRule, serverOfRule } from "../../mcp-settings/tool-names.ts";
import { foldedNames, foldText } from "../paths/file-names.ts";
import { PATH_TOOLS } from "../paths/real-path.ts";
import { patternCommands } from "./command-rules.ts";
import type { Places, Rule } from "./rule.ts";
import { trimmedLine } from "./shell-words.ts";
import { isJoinedBy } from "./wildcard.ts";

/** Null if the text is not a valid rule. */
export function parseRule(text: string): Rule | null {
  const [, tool, , pattern] = /^([A-Za-z_][\w.:/-]*|mcp__[\w*-]*|\*)\s*(\(([\s\S]*)\))?$/u.exec(text.trim()) ?? [];
  if (tool === undefined || (isServerRule(tool) && serverOfRule(tool) === null)) return null;
  if (pattern === undefined) return { text, tool, pattern: null, isExact: false, commands: [] };
  if (tool === "*" || tool === "task" || tool === "plan" || isServerRule(tool) || pattern.trim() === "") return null;
  const isLiteral = pattern.startsWith("=");
  const commands = tool === "shell" ? patternCommands(pattern, isLiteral) : [];
  if (isLiteral) return { text, tool, pattern: pattern.slice(1), isExact: true, isLiteral, commands };
  if (tool === "shell" && pattern.includes("*") && commands.length !== 1) return null;
  if (PATH_TOOLS.has(tool) && pathPattern(pattern, "/", "/") === null) return null;
  const trimmed = tool === "shell" ? trimmedLine(pattern) : pattern.trim();
  return { text, tool, pattern: trimmed, isExact: !pattern.includes("*"), commands };
}

const TOOLS: ReadonlySet<string> = new Set(["*", ...PATH_TOOLS, "shell", "task", "plan"]);
/** Tools that also touch everything in a folder. */
const TREE_TOOLS: ReadonlySet<string> = new Set(["list", "search"]);

/** What is wrong with a rule; null if it is valid. */
export function checkRule(text: string, kind: "allow" | "ask" | "deny", platform: string): string | null {
  const rule = parseRule(text);
  if (rule && platform === "win32" && isUnreadableOnWindows(rule, kind))
    return `The rule ${JSON.stringify(text)} does not work on Windows: cmd.exe splits and expands a command line differently from these rules, so they would allow or miss the wrong commands. Use shell for all commands, or shell(=...) with --allow for exactly one line.`;
  // A typo in a tool's name would silently disable a denying rule.
  if (rule && !TOOLS.has(rule.tool) && !isServerRule(rule.tool))
    return `The rule ${JSON.stringify(text)} names an unknown tool. The tools are ${[...TOOLS].slice(1).join(", ")}, and mcp__<server>__<tool>; * is all of them.`;
  if (rule) return null;
  return `${JSON.stringify(text)} is not a valid permission rule. A rule is a tool (read), a tool with paths (write(src/**)), the shell with one simple command (shell(npm *)), a tool of an MCP server without brackets (mcp__github__list_issues), or * for everything.`;
}

/** Whether a rule is for this tool, whatever the call. `isBroad`: match when in doubt, for rules that deny or ask. */
export function namesTool({ tool }: Rule, name: string, isBroad: boolean): boolean {
  if (!isServerRule(tool)) return tool === name;
  const fold = (text: string): string => (isBroad ? text.toLowerCase() : text);
  const isWhole = !tool.slice("mcp__".length).includes("__") && !tool.includes("*");
  return isJoinedBy(fold(isWhole ? `${tool}__*` : tool).split("*"), fold(name));
}

/** Whether a rule depends on parsing words. An exact line that is denied could be run with one more space. */
export function isUnreadableOnWindows({ tool, pattern, isLiteral }: Rule, kind: "allow" | "ask" | "deny"): boolean {
  return tool === "shell" && pattern !== null && !(isLiteral && kind === "allow");
}

/**
 * Whether a rule covers this path and everything the tool would touch there. `isBroad`: match when in doubt, for rules
 * that deny or ask.
 */
export function namesPath(rule: Rule, tool: string, path: string, { cwd, home }: Places, isBroad: boolean): boolean {
  const given = rule.isExact ? literal(rule.pattern!, cwd, home) : pathPattern(rule.pattern!, cwd, home);
  if (given === null) return false;
  if (isBroad) {
    const pattern = given.map((segment) => (segment === DEEP ? DEEP : segment.map(foldText)));
    const folded = foldedNames(path).filter((name) => name !== "");
    return matches(pattern, segments(path).map(foldText)) || matches(pattern, folded);
  }
  if (TREE_TOOLS.has(tool) && !rule.isExact && given.at(-1) !== DEEP) return false;
  return matches(given, segments(path));
}

const DEEP = "**";
/** The parts of a name between its wildcards. */
type Segment = readonly string[] | typeof DEEP;

function segments(path: string): string[] {
  return path.split(sep).filter((name) => name !== "");
}

function splitBase(pattern: string, cwd: string, home: string): { base: string[]; names: string[] } {
  const names = pattern.split(sep === "/" ? "/" : /[/\\]/u);
  if (names[0] === "~") return { base: segments(home), names: names.slice(1) };
  if (names[0] === "") return { base: [], names };
  return /^[A-Za-z]:$/u.test(names[0]!) && sep === "\\" ? { base: [], names } : { base: segments(cwd), names };
}

function literal(pattern: string, cwd: string, home: string): Segment[] {
  const { base, names } = splitBase(pattern, cwd, home);
  return normal([...base, ...names].map((name) => [name]));
}

/** Null if `..` follows a wildcard: where it leads is unknown. */
function pathPattern(pattern: string, cwd: string, home: string): Segment[] | null {
  const { base, names } = splitBase(pattern.trim(), cwd, home);
  const firstWild = names.findIndex((name) => name.includes("*"));
  if (firstWild >= 0 && names.slice(firstWild).includes("..")) return null;
  const parsed = names.map((name): Segment => (name === DEEP ? DEEP : name.split("*")));
  return normal([...base.map((name) => [name]), ...parsed]);
}

function normal(given: readonly Segment[]): Segment[] {
  const all: Segment[] = [];
  for (const segment of given) {
    if (segment !== DEEP && segment.length === 1 && (segment[0] === "" || segment[0] === ".")) continue;
    if (segment !== DEEP && segment.length === 1 && segment[0] === "..") all.pop();
    else all.push(segment);
  }
  return all;
}

/** `open[i]`: the first i segments of the pattern match the names so far. */
function matches(pattern: readonly Segment[], names: readonly string[]): boolean {
  const passDeep = (open: boolean[]): boolean[] => {
    for (const [at, segment] of pattern.entries()) if (open[at] && segment === DEEP) open[at + 1] = true;
    return open;
  };
  let open = passDeep([true]);
  for (const name of names) {
    const next: boolean[] = [];
    for (const [at, segment] of pattern.entries()) {
      if (!open[at]) continue;
      if (segment === DEEP) next[at] = true;
      else if (isJoinedBy(segment, name)) next[at + 1] = true;
    }
    open = passDeep(next);
  }
  return open[pattern.length] === true;
}
