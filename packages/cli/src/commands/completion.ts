import { Argument, type Command } from "commander";
import { withStore } from "../store/open.ts";
import { allSessions } from "../store/session-id.ts";
import { plainLine } from "../terminal/plain.ts";

const IDS_MAX = 200;
const TITLE_CHARACTERS = 60;
/** The hidden command that completion scripts call for session ids. */
const IDS = "complete-ids";

export function register(program: Command): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .summary("print shell completion for bash, zsh or fish")
    .description("Prints a script that completes commands, options and session ids in your shell.")
    .addHelpText(
      "after",
      [
        "\nExamples:",
        "  bash:  holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast",
        "  zsh:   holdfast completion zsh > $fpath[1]/_holdfast",
        "  fish:  holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
      ].join("\n"),
    )
    .action((shell: "bash" | "zsh" | "fish") => {
      process.stdout.write(scripts[shell](treeOf(program)));
    });
  program
    .command(IDS, { hidden: true })
    .argument("[prefix]")
    .action((prefix: string | undefined, _options: object, command: Command) =>
      withStore(
        command.optsWithGlobals(),
        async (store) => {
          let count = 0;
          for await (const { id, title } of allSessions(store)) {
            if (!id.startsWith(prefix ?? "")) continue;
            process.stdout.write(`${id}\t${plainLine(title).slice(0, TITLE_CHARACTERS)}\n`);
            if (++count >= IDS_MAX) return;
          }
        },
        () => undefined,
      ),
    );
}

/** What a completion script needs to know about a command. */
export interface Completed {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly {
    readonly flags: readonly string[];
    readonly what: string;
    readonly choices: readonly string[];
    readonly takesValue: boolean;
  }[];
  readonly takesId: boolean;
  readonly choices: readonly string[];
}

export function treeOf(program: Command): readonly Completed[] {
  const help = program.createHelp();
  return help.visibleCommands(program).map((command) => ({
    name: command.name(),
    summary: command.summary() || command.description(),
    options: [
      ...help.visibleOptions(command),
      ...help.visibleGlobalOptions(command),
      ...program.options.filter((one) => one.long === "--store"),
    ]
      .filter((option, i, all) => all.findIndex((one) => one.long === option.long) === i)
      .map((option) => ({
        flags: [option.short, option.long].filter((flag): flag is string => flag !== undefined),
        what: option.description,
        choices: option.argChoices ?? [],
        takesValue: option.required || option.optional,
      })),
    takesId:
      command.registeredArguments.some((argument) => argument.name() === "id") ||
      command.options.some((option) => option.long === "--resume"),
    choices:
      command.name() === "help"
        ? program.commands.map((one) => one.name())
        : (command.registeredArguments[0]?.argChoices ?? []),
  }));
}

const scripts: Readonly<Record<"bash" | "zsh" | "fish", (commands: readonly Completed[]) => string>> = {
  bash,
  zsh,
  fish,
};

function bash(commands: readonly Completed[]): string {
  const cases = commands.flatMap(({ name, options, takesId, choices }) => [
    `    ${name})`,
    `      words="${[...options.flatMap(({ flags }) => flags), ...choices].join(" ")}"`,
    ...options
      .filter((option) => option.choices.length > 0)
      .map(({ flags, choices: of }) => `      case "$previous" in ${flags.join("|")}) words="${of.join(" ")}" ;; esac`),
    ...(takesId
      ? [`      [[ "$current" != -* ]] && words="$words $(holdfast ${IDS} "$current" 2>/dev/null | cut -f1)"`]
      : []),
    "      ;;",
  ]);
  return `# Completion of holdfast for bash, made by "holdfast completion bash".
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words=""
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="${commands.map(({ name }) => name).join(" ")} --version --help"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _holdfast holdfast
`;
}

function zsh(commands: readonly Completed[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const described = (text: string): string => text.replaceAll(/[[\]:]/g, "\\$&");
  const cases = commands.flatMap(({ name, options, takesId, choices }) => [
    `    ${name})`,
    "      _arguments \\",
    ...options.flatMap(({ flags, what, choices: of, takesValue }) =>
      flags.map(
        (flag) =>
          `        ${quoted(`${flag}[${described(what)}]${takesValue ? `:value:${of.length > 0 ? `(${of.join(" ")})` : "_files"}` : ""}`)} \\`,
      ),
    ),
    `        ${quoted(takesId ? "*:session:_holdfast_ids" : choices.length > 0 ? `1:which:(${choices.join(" ")})` : "*:file:_files")}`,
    "      ;;",
  ]);
  return `#compdef holdfast
# Completion of holdfast for zsh, made by "holdfast completion zsh".
_holdfast_ids() {
  local -a found
  found=("\${(@f)$(holdfast ${IDS} "$PREFIX" 2>/dev/null | awk -F '\\t' '{ gsub(":", "-", $2); print $1 ":" $2 }')}")
  _describe session found
}
_holdfast() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="\${words[2]}"
  shift words
  (( CURRENT-- ))
  case "$command" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_holdfast" ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

function fish(commands: readonly Completed[]): string {
  const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const lines = commands.flatMap(({ name, summary, options, takesId, choices }) => {
    const within = `__fish_seen_subcommand_from ${name}`;
    return [
      `complete -c holdfast -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...options.map(({ flags, what, choices: of, takesValue }) => {
        const given = flags
          .map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
          .join(" ");
        const value = takesValue ? (of.length > 0 ? ` -x -a ${quoted(of.join(" "))}` : " -r") : "";
        return `complete -c holdfast -n ${quoted(within)} ${given}${value} -d ${quoted(what)}`;
      }),
      ...(takesId
        ? [`complete -c holdfast -n ${quoted(within)} -f -a '(holdfast ${IDS} (commandline -ct) 2>/dev/null)'`]
        : []),
      ...(choices.length > 0 ? [`complete -c holdfast -n ${quoted(within)} -f -a ${quoted(choices.join(" "))}`] : []),
    ];
  });
  return `# Completion of holdfast for fish, made by "holdfast completion fish".\n${lines.join("\n")}\n`;
}
