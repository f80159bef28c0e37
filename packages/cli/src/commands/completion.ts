import { Argument, type Command, type Option } from "commander";
import { formats } from "../export/format.ts";
import { shortId } from "../short-id.ts";
import { withStore } from "../store/open.ts";
import { allSessions } from "../store/session-id.ts";
import { trashIn } from "../store/trash.ts";
import { plainLine } from "../terminal/plain.ts";
import { fit } from "../terminal/width.ts";

const IDS_MAX = 200;
const TITLE_COLUMNS = 60;
/** The hidden command that completion scripts call for session ids. */
const IDS = "complete-ids";

/** Values of options that Commander does not check. The user continues a name that ends in a slash. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  "--format": formats,
  "--model": [
    ...["offline", "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-5", "anthropic/claude-haiku-4-5"],
    ...["openai/gpt-5", "openai/gpt-5-mini", "google/gemini-2.5-pro", "google/gemini-2.5-flash", "compatible/"],
  ],
};

export function register(program: Command): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .summary("print shell completion for bash, zsh or fish")
    .description("Prints a script that completes commands, options, their values and session ids in your shell.")
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
    .option("--trash")
    .action((prefix = "", { trash }: { readonly trash?: true }, command: Command) =>
      withStore(
        command.optsWithGlobals(),
        async (store) => {
          let count = 0;
          const wanted = String(prefix).toLowerCase();
          for await (const { id, title } of trash ? await trashIn(store) : allSessions(store)) {
            // A shell drops what does not start with what was typed.
            const word = [shortId(id), id].find((one) => one.startsWith(wanted));
            if (word === undefined) continue;
            process.stdout.write(`${word}\t${fit(plainLine(title), TITLE_COLUMNS)}\n`);
            if (++count >= IDS_MAX) return;
          }
        },
        () => undefined,
      ),
    );
}

/** What can follow an option, or a command: words, ids of sessions, ids of deleted ones, or files. */
type Values = readonly string[] | "ids" | "trash" | "files";

/** What a completion script needs to know about a command. */
export interface CommandWords {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly {
    readonly flags: readonly string[];
    readonly what: string;
    /** Null: it takes none. */
    readonly values: Values | null;
  }[];
  readonly values: Values;
}

export function treeOf(program: Command): readonly CommandWords[] {
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
        values: option.required || option.optional ? valuesOf(option) : null,
      })),
    values: wordsOf(program, command),
  }));
}

function valuesOf({ long, argChoices }: Option): Values {
  if (long === "--resume") return "ids";
  return argChoices ?? VALUES[long ?? ""] ?? "files";
}

function wordsOf(program: Command, command: Command): Values {
  if (command.name() === "help") return program.commands.map((one) => one.name());
  if (command.name() === "restore") return "trash";
  if (command.registeredArguments.some((argument) => argument.name() === "id")) return "ids";
  return command.registeredArguments[0]?.argChoices ?? "files";
}

/** For `holdfast` without a command. */
const STARTS = ["-c", "-p", "-r", "-m", "-v", "-h", "--store", "--version", "--help"];

const scripts: Readonly<Record<"bash" | "zsh" | "fish", (commands: readonly CommandWords[]) => string>> = {
  bash,
  zsh,
  fish,
};

/**
 * Titles are other people's words, and `compgen -W` would expand what looks like a command in them: ids are read line
 * by line.
 */
function bash(commands: readonly CommandWords[]): string {
  const given = (values: Values): string =>
    values === "ids"
      ? "_holdfast_ids"
      : values === "trash"
        ? "_holdfast_ids --trash"
        : values === "files"
          ? ":"
          : `_holdfast_words "${values.join(" ")}"`;
  const cases = commands.flatMap(({ name, options, values }) => [
    `    ${name})`,
    '      case "$previous" in',
    ...options
      .filter((option) => option.values !== null)
      .map((option) => `        ${option.flags.join("|")}) ${given(option.values!)}; return ;;`),
    "      esac",
    `      if [[ "$current" == -* ]]; then _holdfast_words "${options.flatMap(({ flags }) => flags).join(" ")}"; return; fi`,
    `      ${given(values)}`,
    "      ;;",
  ]);
  return `# Completion of holdfast for bash, made by "holdfast completion bash".
_holdfast_words() {
  local word
  for word in $1; do if [[ "$word" == "$current"* ]]; then COMPREPLY+=("$word"); fi; done
  # A name that goes on gets no space behind it.
  if [[ \${#COMPREPLY[@]} -eq 1 && "\${COMPREPLY[0]}" == */ ]]; then compopt -o nospace 2>/dev/null; fi
}
_holdfast_ids() {
  local id title ids=() lines=()
  while IFS=$'\t' read -r id title; do
    ids+=("$id")
    lines+=("$id  $title")
  done < <(holdfast ${IDS} "$current" "$@" 2>/dev/null)
  # Several are shown with their titles; one is completed.
  if [[ \${#ids[@]} -gt 1 && "\${COMP_TYPE:-0}" == 63 ]]; then COMPREPLY=("\${lines[@]}"); else COMPREPLY=("\${ids[@]}"); fi
}
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  # --option=value is three words here.
  if [[ "$current" == "=" ]]; then current=""; elif [[ "$previous" == "=" ]]; then previous="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  if [[ "$COMP_CWORD" -eq 1 ]]; then
    _holdfast_words "${[...commands.map(({ name }) => name), ...STARTS].join(" ")}"
    return
  fi
  local command="\${COMP_WORDS[1]}"
  # Without a command, the options of a chat.
  if [[ "$command" == -* ]]; then command=chat; fi
  case "$command" in
${cases.join("\n")}
  esac
}
complete -o default -F _holdfast holdfast
`;
}

function zsh(commands: readonly CommandWords[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const described = (text: string): string => text.replaceAll(/[[\]:]/g, "\\$&");
  const given = (values: Values): string =>
    values === "ids"
      ? "session:_holdfast_ids"
      : values === "trash"
        ? "session:_holdfast_trash"
        : values === "files"
          ? "file:_files"
          : `value:(${values.join(" ")})`;
  const cases = commands.flatMap(({ name, options, values }) => [
    `    ${name})`,
    "      _arguments \\",
    ...options.flatMap(({ flags, what, values: own }) =>
      flags.map((flag) => `        ${quoted(`${flag}[${described(what)}]${own === null ? "" : `:${given(own)}`}`)} \\`),
    ),
    `        ${quoted(`*:${given(values)}`)}`,
    "      ;;",
  ]);
  return `#compdef holdfast
# Completion of holdfast for zsh, made by "holdfast completion zsh".
_holdfast_ids() {
  local -a found
  found=("\${(@f)$(holdfast ${IDS} "$PREFIX" "\${_holdfast_of[@]}" 2>/dev/null | awk -F '\t' '{ gsub(/[:\\\\]/, "-", $2); print $1 ":" $2 }')}")
  _describe session found
}
_holdfast_trash() {
  local -a _holdfast_of=(--trash)
  _holdfast_ids
}
_holdfast() {
  local -a commands _holdfast_of=()
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join("\n")}
  )
  local command="\${words[2]}"
  if (( CURRENT == 2 )) && [[ "$command" != -* ]]; then
    _describe command commands
    return
  fi
  # Without a command, the options of a chat.
  if [[ "$command" == -* ]]; then
    command=chat
  else
    shift words
    (( CURRENT-- ))
  fi
  case "$command" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_holdfast" ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

function fish(commands: readonly CommandWords[]): string {
  const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const ids = (trash: string): string => `'(holdfast ${IDS} (commandline -ct)${trash} 2>/dev/null)'`;
  const given = (values: Values): string | null =>
    values === "ids"
      ? ids("")
      : values === "trash"
        ? ids(" --trash")
        : values === "files"
          ? null
          : quoted(values.join(" "));
  const flagsOf = (flags: readonly string[]): string =>
    flags.map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(" ");
  const optionLines = (within: string, options: CommandWords["options"]): string[] =>
    options.map(({ flags, what, values }) => {
      const words = values === null ? null : given(values);
      const value = values === null ? "" : words === null ? " -r" : ` -x -a ${words}`;
      return `complete -c holdfast -n ${quoted(within)} ${flagsOf(flags)}${value} -d ${quoted(what)}`;
    });
  const chat = commands.find(({ name }) => name === "chat");
  const lines = commands.flatMap(({ name, summary, options, values }) => {
    const within = `__fish_seen_subcommand_from ${name}`;
    const words = given(values);
    return [
      `complete -c holdfast -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...optionLines(within, options),
      ...(words === null ? [] : [`complete -c holdfast -n ${quoted(within)} -f -a ${words}`]),
    ];
  });
  // Without a command, the options of a chat.
  const start = [
    ...optionLines("__fish_use_subcommand", chat?.options ?? []),
    "complete -c holdfast -n __fish_use_subcommand -s p -l print -d 'print the answer and exit'",
  ];
  return `# Completion of holdfast for fish, made by "holdfast completion fish".\n${[...lines, ...start].join("\n")}\n`;
}
