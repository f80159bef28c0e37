import { type Command, Option } from "commander";

/** The flags of every command that calls a model. config.ts defines them and the other ways to set them. */
export function modelOptions(command: Command): Command {
  return command
    .option("-m, --model <name>", 'model to use, as provider/name; "offline" is built in and needs no key')
    .option("--base-url <url>", "URL of an OpenAI-compatible server, for compatible/name")
    .addOption(
      rules("--allow", "allow these calls without asking, e.g. 'write(src/**)', 'shell(npm test)'; repeatable"),
    )
    .addOption(rules("--ask", "ask about these calls; repeatable"))
    .addOption(rules("--deny", "never run these calls; repeatable"))
    .option("--window-tokens <n>", "the model's context window, in tokens");
}

export function rules(flag: string, what: string): Option {
  return new Option(`${flag} <rule>`, what)
    .argParser((rule: string, before: readonly string[]) => [...before, rule])
    .default([], "none");
}

/** In the help of each command that resumes a session by its id. */
export const TAKE_OVER = "with --resume <id>: continue a session that another program wrote";
