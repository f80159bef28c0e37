import type { Command } from "commander";

/** The flags of every command that asks a model. config.ts says what they mean, and what else sets them. */
export function modelOptions(command: Command): Command {
  return command
    .option("--model <name>", 'the model, as provider/name; "offline" is built in and needs no key')
    .option("--base-url <url>", "the address of an OpenAI-compatible server, for compatible/name")
    .option(
      "--allow <rule>",
      "allow these calls without asking, e.g. 'write(src/**)', 'shell(npm test)'; repeatable",
      added,
      [],
    )
    .option("--ask <rule>", "ask about these calls; repeatable", added, [])
    .option("--deny <rule>", "never run these calls; repeatable", added, [])
    .option("--window-tokens <n>", "how many tokens the model's window holds");
}

function added(rule: string, rules: readonly string[]): readonly string[] {
  return [...rules, rule];
}
