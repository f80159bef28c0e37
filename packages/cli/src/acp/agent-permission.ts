import { join, resolve } from "node:path";
import type { Params } from "@holdfast/acp/internal/wrap";
import { type Config, configPath } from "../config.ts";
import { defined } from "../defined.ts";
import { checkedRules } from "../host/local/checked-rules.ts";
import { outputsFolder } from "../store/output-folders.ts";
import { realPath } from "../tools/paths/real-path.ts";
import { allowFlag, type Decision, decide, type PolicyContext } from "../tools/permission/decide.ts";
import { shapeOf } from "../transcript/shape.ts";
import { stateFolder } from "../trust/state-folder.ts";

/** A call of an agent that others wrote, in the words of the permission rules. */
export interface RuledCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface RuledRequest {
  readonly verdict: Decision["verdict"];
  /** What the call would do, on one line. */
  readonly summary: string;
  /** The flag that would allow it; null if none would. */
  readonly flag: string | null;
}

/** Judges what agents ask permission for, by the same rules as the calls of Holdfast's own agent. */
export class AgentPermission {
  readonly #context: (cwd: string) => PolicyContext;

  /** Throws CommandError RULE_INVALID, CONFIG_INVALID. `store`: its address. */
  constructor(config: Pick<Config, "allow" | "ask" | "deny">, store: string) {
    const rules = checkedRules(config);
    const [path, state, allOutputs] = [configPath(), stateFolder(), outputsFolder(store)];
    this.#context = (folder) => {
      const cwd = realPath("/", folder);
      const project = rules.of(cwd);
      const kinds = ["allow", "ask", "deny"] as const;
      const [allow, ask, deny] = kinds.map((kind) => [...config[kind], ...project[kind]]);
      return {
        ...{ cwd, store, policy: { allow: allow!, ask: ask!, deny: deny! } },
        ...(allOutputs === null ? {} : { allOutputs }),
        ...(state === null ? {} : { state: join(state, "holdfast") }),
        ...(path === null ? {} : { config: resolve(path) }),
        ...defined({ rules: rules.path ?? undefined }),
      };
    };
  }

  /** `cwd`: the folder of the session. Never throws. */
  judge(cwd: string, { toolCall }: Params): RuledRequest {
    const calls = callsOf(toolCall);
    const decisions = calls.map((call) => decide(call, this.#context(cwd)));
    const worst = (["deny", "ask", "allow"] as const).find((verdict) =>
      decisions.some((one) => one.verdict === verdict),
    )!;
    const decisive = decisions.find(({ verdict }) => verdict === worst)!;
    return {
      verdict: worst,
      summary: decisions.map(({ summary }) => summary).join(", "),
      flag: worst === "ask" && decisive.isAllowable ? allowFlag(decisive.suggestion) : null,
    };
  }
}

/**
 * The answer to a request for permission. What an agent would remember beyond this call is not chosen if it can be
 * helped.
 */
export function outcomeFor({ options }: Params, isAllowed: boolean): Params {
  const offered = (Array.isArray(options) ? options : []).map(shapeOf);
  const kinds = isAllowed ? ["allow_once", "allow_always"] : ["reject_once"];
  for (const kind of kinds) {
    const found = offered.find((option) => option?.["kind"] === kind);
    if (found) return { outcome: "selected", optionId: found["optionId"] };
  }
  return { outcome: "cancelled" };
}

/**
 * What the agent says of the call, as calls of our own tools: one for each file. A call that names no command and no
 * file is allowed only by rules that allow all of its kind.
 */
export function callsOf(toolCall: unknown): readonly RuledCall[] {
  const call = shapeOf(toolCall) ?? {};
  const input = shapeOf(call["rawInput"]) ?? {};
  const name = textIn(call["name"]) ?? "";
  switch (call["kind"]) {
    case "execute":
      return [{ name: "shell", input: defined({ command: commandIn(input) ?? commandInTitle(call) }) }];
    case "read":
      return onEach("read", pathsIn(call, input));
    case "search":
      return onEach("search", pathsIn(call, input));
    case "edit":
      return onEach(isChange(call) ? "edit" : "write", pathsIn(call, input));
    default:
      return [{ name: name === "" ? String(call["kind"] ?? "other") : name, input }];
  }
}

function onEach(name: string, paths: readonly string[]): readonly RuledCall[] {
  // Without a path, a search is one of the whole folder, and everything else is unclear.
  return paths.length === 0 ? [{ name, input: {} }] : paths.map((path) => ({ name, input: { path } }));
}

/** Only if the file was there before. */
function isChange(call: Readonly<Record<string, unknown>>): boolean {
  const content = Array.isArray(call["content"]) ? call["content"].map(shapeOf) : [];
  const diffs = content.filter((one) => one?.["type"] === "diff");
  return diffs.length > 0 && diffs.every((one) => textIn(one?.["oldText"]) !== null);
}

function pathsIn(call: Readonly<Record<string, unknown>>, input: Readonly<Record<string, unknown>>): string[] {
  const [locations, content] = [call["locations"], call["content"]].map((one) => (Array.isArray(one) ? one : []));
  const named = ["path", "file_path", "filePath", "absolute_path"].map((member) => input[member]);
  const all = [...[...locations!, ...content!].map((one) => shapeOf(one)?.["path"]), ...named];
  return [...new Set(all.flatMap((one) => textIn(one) ?? []))];
}

/** The line for the shell; undefined if the agent does not say it. */
function commandIn(input: Readonly<Record<string, unknown>>): string | undefined {
  const given = input["command"] ?? input["cmd"];
  if (typeof given === "string") return given;
  if (!Array.isArray(given) || !given.every((word) => typeof word === "string")) return undefined;
  // A shell with its script: the script is what runs.
  if (given.length === 3 && /^(?:.*\/)?(?:ba|z|da)?sh$/.test(given[0]!) && /^-l?c$/.test(given[1]!)) return given[2];
  return given.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/** Gemini CLI names the command nowhere else. A title with an ellipsis may hide the rest of the command. */
function commandInTitle({ rawInput, title }: Readonly<Record<string, unknown>>): string | undefined {
  const words = rawInput === undefined ? textIn(title) : null;
  return words === null || /…|\.\.\./.test(words) ? undefined : words;
}

function textIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
