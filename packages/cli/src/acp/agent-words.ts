import { CommandError, EXIT } from "../exit.ts";

/**
 * The words of an agent's command, as a shell would split them: spaces, quotes and backslashes. Anything else that a
 * shell would act on is refused, because there is none. Throws CommandError USAGE.
 */
export function agentWords(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!;
    if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (char === "'" || char === '"') {
      const end = char === "'" ? line.indexOf("'", at + 1) : closingQuote(line, at + 1);
      if (end === -1) throw refused(line, `it has a ${char} without its end`);
      const inside = line.slice(at + 1, end);
      word = (word ?? "") + (char === "'" ? inside : inside.replaceAll(/\\(["\\$`])/g, "$1"));
      at = end;
    } else if (char === "\\" && process.platform !== "win32") {
      at += 1;
      word = (word ?? "") + (line[at] ?? "");
    } else {
      if (/[;&|<>$`]/.test(char)) throw refused(line, `${char} means something to a shell only`);
      word = (word ?? "") + char;
    }
  }
  if (word !== null) words.push(word);
  if (words.length === 0) throw refused(line, "it is empty");
  return words;
}

function closingQuote(line: string, from: number): number {
  for (let at = from; at < line.length; at++) {
    if (line[at] === "\\") at += 1;
    else if (line[at] === '"') return at;
  }
  return -1;
}

function refused(line: string, why: string): CommandError {
  const message = `--agent ${JSON.stringify(line.slice(0, 80).toWellFormed())} is not one command: ${why}. Nothing was started. Give the agent's command and its arguments, such as --agent 'gemini --acp'.`;
  return new CommandError(EXIT.usage, "USAGE", message);
}
