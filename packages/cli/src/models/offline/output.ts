import { plainPath } from "./known.ts";

/** What the tools answer, read back. They answer text for a model, and this is one. */

/** The tool left something out. */
export function isPart(text: string): boolean {
  return /\n\[… .*left out here; .*\]\n|\n\[[^\]\n]*(more lines|read on|offset)[^\]\n]*\]\s*$/i.test(text);
}

/** The files that a list names: one on each line; folders end with a slash, and notes stand in brackets. */
export function filesListed(text: string, folder: string): string[] {
  const files = text
    .split("\n")
    .map((line) => line.trim().replace(/\s+\(.*\)$/, ""))
    .filter(
      (line) => line !== "" && !line.endsWith("/") && !/^[[(]|:$/.test(line) && !/^(no|there are no) /i.test(line),
    );
  return sorted(files.map((file) => within(folder, file)));
}

/** The files that a search names: path:line: text. */
export function filesFound(text: string, folder: string): string[] {
  const files = text.split("\n").flatMap((line) => {
    const found = /^(.+?):\d+:/.exec(line);
    return found ? [within(folder, found[1]!)] : [];
  });
  return sorted(files);
}

/** Whether a command succeeded, by what the tool says of its exit status. */
export function hasPassed(text: string): boolean {
  const status = /\b(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|status)[:= ]+(?:was )?(\d+)/i.exec(text);
  if (status) return status[1] === "0";
  return !/\b(killed by|ended by|timed out after)\b/i.test(text);
}

export function countOf(text: string): { readonly lines: number; readonly words: number } {
  const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
  return { lines, words: text.split(/\s+/).filter((word) => word !== "").length };
}

/** Tools name files from the working folder, or from the folder that was asked for. */
function within(folder: string, file: string): string {
  const [home, path] = [plainPath(folder), plainPath(file)];
  if (home === "." || path.startsWith("/") || path.startsWith(`${home}/`) || path === home) return path;
  return `${home}/${path}`;
}

function sorted(paths: readonly string[]): string[] {
  return [...new Set(paths)].sort();
}
