import { existsSync } from "node:fs";
import { Argument, type Command } from "commander";
import { configPath, explainConfig, rulesPath } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { jsonText } from "../terminal/json.ts";
import { plainLine } from "../terminal/plain.ts";
import { tableLines } from "../terminal/table.ts";
import { visibleLine } from "../terminal/visible.ts";
import { checkRule } from "../tools/permission/decide.ts";
import { ProjectRules, projectOf, RULE_KINDS, type RuleKind } from "../trust/project-rules.ts";

interface Options {
  readonly project?: string;
  readonly all?: true;
  readonly ask?: true;
  readonly deny?: true;
  readonly json?: true;
}

/** One rule in effect, and where it comes from. */
interface Row {
  readonly kind: RuleKind;
  readonly rule: string;
  /** The project's folder; null if it applies everywhere. */
  readonly project: string | null;
  readonly from: string;
}

export function register(program: Command): void {
  program
    .command("rules")
    .summary("list, add and remove permission rules of a project")
    .description(
      "Lists the permission rules that apply in this folder, or adds and removes rules of this project. A project is a folder: its rules apply to sessions that work in exactly that folder. They are saved in your configuration, never in the project.",
    )
    .addArgument(new Argument("[action]", "what to do").choices(["list", "add", "remove"]).default("list"))
    .argument("[rule...]", "for add and remove: the rules")
    .option("--ask", "with add: rules for calls that need approval")
    .option("--deny", "with add: rules for calls that never run")
    .option("--project <folder>", "the project's folder (default: this folder)")
    .option("--all", "with list: the rules of all projects")
    .option("--json", "one JSON object per rule, one per line")
    .addHelpText(
      "after",
      `
Examples:
  holdfast rules
  holdfast rules add 'shell(npm test)' 'write(src/**)'
  holdfast rules add --deny 'shell(git push)'
  holdfast rules remove 'shell(npm test)'`,
    )
    .action((action: "list" | "add" | "remove", given: readonly string[], options: Options) => {
      assertUsage(action, given, options);
      const rules = new ProjectRules(rulesPath());
      if (action === "list") {
        list(rules, options);
        return;
      }
      const project = folderOf(options);
      const kind = options.deny ? "deny" : options.ask ? "ask" : "allow";
      if (action === "add") {
        for (const rule of given) {
          const wrong = checkRule(rule, kind, process.platform);
          if (wrong !== null) throw usage(wrong, "RULE_INVALID");
        }
      }
      const done = action === "add" ? rules.add(project, kind, given) : rules.remove(project, given);
      const missing = given.filter((rule) => !done.includes(rule));
      for (const rule of done) {
        if (options.json) process.stdout.write(`${jsonText({ action, kind, rule, project })}\n`);
        else process.stdout.write(`${action === "add" ? "Added" : "Removed"}: ${shownRule(rule)}\n`);
      }
      if (missing.length === 0) return;
      const words = missing.map(shownRule).join(", ");
      if (action === "add") {
        process.stderr.write(`Already there: ${words}\n`);
        return;
      }
      const message = `No such rule in ${plainLine(project)}: ${words}. "holdfast rules" lists the rules.`;
      throw new CommandError(EXIT.notFound, "RULE_UNKNOWN", message);
    });
}

function assertUsage(action: string, given: readonly string[], { all, ask, deny, project }: Options): void {
  if (action === "list" && given.length > 0) throw usage("list takes no rules.");
  if (action !== "list" && given.length === 0) throw usage(`Which rule? holdfast rules ${action} 'shell(npm test)'`);
  if (action !== "list" && all) throw usage("--all is for list.");
  if (action !== "add" && (ask || deny)) throw usage("--ask and --deny are for add.");
  if (ask && deny) throw usage("A rule either asks or denies: give --ask or --deny.");
  if (all && project !== undefined) throw usage("Give --all or --project.");
}

function folderOf({ project = process.cwd() }: Options): string {
  const found = projectOf(project);
  if (typeof found === "string") return found;
  throw usage(`No rules can be saved for this project: ${plainLine(found.why)}.`);
}

function list(rules: ProjectRules, options: Options): void {
  const projects = [...rules.load()];
  const here = options.all ? null : projectOf(options.project ?? process.cwd());
  const path = rules.path ?? "";
  const own = projects
    .filter(([folder]) => options.all || folder === here)
    .flatMap(([folder, set]) =>
      RULE_KINDS.flatMap((kind) => set[kind].map((rule): Row => ({ kind, rule, project: folder, from: path }))),
    );
  const rows = [...own, ...everywhere()].sort((a, b) => RANK[a.kind] - RANK[b.kind]);
  if (options.json) {
    for (const row of rows) process.stdout.write(`${jsonText(row)}\n`);
    return;
  }
  const place = typeof here === "string" ? plainLine(here) : "any project";
  if (rows.length === 0)
    process.stdout.write(`No rules apply in ${place}: the agent asks before it changes anything.\n`);
  else process.stdout.write(`${table(rows, options.all === true)}\n`);
  process.stdout.write(`\nproject rules: ${rules.path === null ? "none: no configuration" : fileWords(rules.path)}\n`);
}

/** A denying rule beats one that asks, which beats one that allows. */
const RANK: Readonly<Record<RuleKind, number>> = { deny: 0, ask: 1, allow: 2 };

/** Rules of the configuration and the environment. */
function everywhere(): Row[] {
  const file = configPath();
  return explainConfig().flatMap(({ setting: { key }, value, from }): Row[] => {
    const kind = RULE_KINDS.find((one) => one === key);
    if (kind === undefined) return [];
    const origin = from.map((one) => (one === file ? "the configuration file" : one)).join(", ");
    return (value as readonly string[]).map((rule) => ({ kind, rule, project: null, from: origin }));
  });
}

function table(rows: readonly Row[], isAll: boolean): string {
  const cells = rows.map(({ kind, rule, project, from }) => [
    kind,
    shownRule(rule),
    project === null ? plainLine(from) : isAll ? plainLine(project) : "this project",
  ]);
  const columns = [{ title: "effect" }, { title: "rule", shrinksTo: 24 }, { title: "from", shrinksTo: 12 }];
  return tableLines(columns, cells, process.stdout.columns).join("\n");
}

/** A rule may contain a command with any characters. */
function shownRule(rule: string): string {
  return visibleLine(rule);
}

function fileWords(path: string): string {
  return existsSync(path) ? plainLine(path) : `${plainLine(path)} (does not exist)`;
}

function usage(message: string, code = "USAGE"): CommandError {
  return new CommandError(EXIT.usage, code, `${message} Nothing was touched.`);
}
