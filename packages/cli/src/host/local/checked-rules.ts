import { type Config, rulesPath } from "../../config.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { checkRule } from "../../tools/permission/decide.ts";
import { ProjectRules, RULE_KINDS } from "../../trust/project-rules.ts";

/**
 * The rules for projects, and those of the configuration with them, if all are valid: a rule that we cannot parse may
 * matter to the user, so nothing is done until it is fixed. Throws CommandError RULE_INVALID.
 */
export function checkedRules(config: Pick<Config, "allow" | "ask" | "deny">): ProjectRules {
  const rules = new ProjectRules(rulesPath());
  for (const kind of RULE_KINDS) {
    for (const rule of [...config[kind], ...[...rules.load().values()].flatMap((set) => set[kind])]) {
      const wrong = checkRule(rule, kind, process.platform);
      if (wrong !== null) throw new CommandError(EXIT.usage, "RULE_INVALID", `${wrong} Nothing was touched.`);
    }
  }
  return rules;
}
