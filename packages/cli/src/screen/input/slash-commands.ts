/** Commands for the screen itself, not for the model. */
export const COMMANDS = [
  { name: "help", argument: "", does: "keys and commands" },
  { name: "sessions", argument: "", does: "switch to another session; this one keeps running" },
  { name: "fork", argument: "", does: "copy this conversation into a new session" },
  { name: "rewind", argument: "", does: "go back to before a prompt and edit it" },
  { name: "compact", argument: "", does: "replace the conversation with a summary" },
  { name: "clear", argument: "", does: "clear the conversation of this session" },
  { name: "undo", argument: "", does: "undo the last /compact, /clear or /rewind" },
  { name: "model", argument: "[name]", does: "show or change the model, as provider/name" },
  { name: "export", argument: "[file]", does: "save the conversation to a file: .md, .html or .jsonl" },
  { name: "rename", argument: "<title>", does: "rename this session" },
  { name: "quit", argument: "", does: "quit; everything is saved" },
] as const;

export type CommandName = (typeof COMMANDS)[number]["name"];

export type Parsed =
  | { readonly kind: "command"; readonly name: CommandName; readonly argument: string }
  | { readonly kind: "unknown"; readonly name: string }
  | { readonly kind: "prompt" };

/** `/name argument` on one line. A path such as `/etc/hosts` is a prompt. */
export function parseSlashCommand(text: string): Parsed {
  const match = /^\/([a-z]+)(?:[ \t]([^\n]*))?$/iu.exec(text.trim());
  if (match === null) return { kind: "prompt" };
  const said = match[1]!.toLowerCase();
  // Other programs call it exit.
  const name = said === "exit" ? "quit" : said;
  const known = COMMANDS.find((one) => one.name === name);
  if (known === undefined) return { kind: "unknown", name };
  return { kind: "command", name: known.name, argument: (match[2] ?? "").trim() };
}

/** The command that was probably meant: one letter is extra, missing, wrong or swapped. */
export function guessCommand(name: string): CommandName | null {
  return COMMANDS.find((one) => isSlip(name, one.name) || isSlip(one.name, name))?.name ?? null;
}

/** Whether `a` is `b` with one letter missing, wrong or swapped. */
function isSlip(a: string, b: string): boolean {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const [rest, wanted] = [a.slice(at), b.slice(at)];
  const swapped = wanted.slice(0, 2).split("").reverse().join("");
  return rest === wanted.slice(1) || rest.slice(1) === wanted.slice(1) || rest === swapped + wanted.slice(2);
}

/** Commands that start with this text. */
export function matchCommands(text: string): readonly (typeof COMMANDS)[number][] {
  if (!/^\/[a-z]*$/u.test(text)) return [];
  return COMMANDS.filter(({ name }) => name.startsWith(text.slice(1)));
}

/**
 * What Tab completes: the prefix that all matches share; a single match in full, plus a space if it takes an argument.
 */
export function completeCommand(text: string): string {
  const found = matchCommands(text);
  if (found.length === 0) return text;
  if (found.length === 1) return `/${found[0]!.name}${found[0]!.argument === "" ? "" : " "}`;
  let shared = found[0]!.name as string;
  for (const { name } of found) while (!name.startsWith(shared)) shared = shared.slice(0, -1);
  return `/${shared}`;
}
