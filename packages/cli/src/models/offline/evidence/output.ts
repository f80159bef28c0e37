import { plainPath } from "./path.ts";

/** Parses the results of the agent's tools (src/tools), which are text for a model. */

/** Whether the tool left something out. */
export function isPart(text: string): boolean {
  return /\n\[Lines \d+ to \d+ of \d+[^\]\n]*\]$|\n\[… \d+ \w+ left out here; .*\]\n/.test(text);
}

/** The text of a file; "" if `read` reports that it is empty, null if it is not text. */
export function textRead(answer: string): string | null {
  if (/^\[[^\n]* is empty\.\]$/.test(answer)) return "";
  return /^\[[^\n]* This tool shows text only\.\]$/.test(answer) ? null : answer;
}

/** The files in a `list` result, with their folder. Other entries end with a mark; notes are in brackets. */
export function parseListedFiles(answer: string, folder: string): string[] {
  const home = plainPath(folder);
  const names = answer.split("\n").filter((line) => line.trim() !== "" && !/[/@]$|^\[.*\]$/.test(line));
  return sortPaths(names.map((name) => (home === "." ? name : `${home}/${name}`)));
}

/** The files in a `search` result, which has path:line: text, relative to the working folder. */
export function filesFound(answer: string): string[] {
  return sortPaths(answer.split("\n").flatMap((line) => /^(.+?):\d+:/.exec(line)?.[1] ?? []));
}

/** Whether there is more than the tool showed. */
export function isCut(answer: string): boolean {
  return /only the first \d+ /.test(lastNote(answer));
}

/** `shell` reports the exit status in its last line, if it is not 0. */
export function hasPassed(answer: string): boolean {
  return !/\[exit status [1-9]/.test(lastNote(answer.trimEnd()));
}

/** The note in brackets at the very end; empty if there is none. */
function lastNote(answer: string): string {
  if (!answer.endsWith("]")) return "";
  const line = answer.slice(answer.lastIndexOf("\n") + 1, -1);
  const note = line.slice(line.lastIndexOf("]") + 1);
  const start = note.indexOf("[");
  return start < 0 ? "" : note.slice(start);
}

export function countOf(text: string): { readonly lines: number; readonly words: number } {
  const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
  return { lines, words: text.split(/\s+/).filter((word) => word !== "").length };
}

function sortPaths(paths: readonly string[]): string[] {
  return [...new Set(paths)].sort();
}
