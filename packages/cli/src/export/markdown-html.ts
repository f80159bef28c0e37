/**
 * Markdown in which HTML is shown instead of rendered, and images become links: opening the file must not contact
 * another machine (C25). Other links are left to the reader's program. Only what every reader treats as code is left
 * alone: fences at the start of a line, and code spans within one line that is not a table row. Anything else is
 * escaped; at worst, a reader sees `&lt;` for `<`.
 */
export function escapedHtml(markdown: string): {
  readonly markdown: string /** The fence that would close what is still open. */;
  readonly isOpen: string | null;
} {
  let fence: string | null = null;
  const lines = markdown.split("\n").map((line) => {
    if (fence !== null) {
      if (closes(line, fence)) fence = null;
      return line;
    }
    const opened = /^(`{3,})[^`]*$|^(~{3,})/.exec(line);
    fence = opened?.[1] ?? opened?.[2] ?? null;
    return fence === null ? escapedLine(line) : withSafeInfo(line, fence);
  });
  return { markdown: lines.join("\n"), isOpen: fence };
}

/** A closing fence may be indented, if it is of the same kind and not shorter. */
function closes(line: string, fence: string): boolean {
  const found = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return found !== undefined && found[0] === fence[0] && found.length >= fence.length;
}

function withSafeInfo(line: string, fence: string): string {
  return fence + line.slice(fence.length).replaceAll("<", "&lt;");
}

function escapedLine(line: string): string {
  if (!line.includes("<") && !line.includes("![")) return line;
  if (line.includes("|")) return escapeHtml(line);
  let out = "";
  let text = 0;
  for (let at = line.indexOf("`"); at !== -1; at = line.indexOf("`", at)) {
    const ticks = /^`+/.exec(line.slice(at))![0].length;
    const end = isEscaped(line, at) ? -1 : closingTicks(line, at + ticks, ticks);
    if (end === -1) {
      at += isEscaped(line, at) ? 1 : ticks;
      continue;
    }
    out += escapeHtml(line.slice(text, at)) + line.slice(at, end);
    at = end;
    text = end;
  }
  return out + escapeHtml(line.slice(text));
}

function isEscaped(line: string, at: number): boolean {
  let slashes = 0;
  while (line[at - 1 - slashes] === "\\") slashes += 1;
  return slashes % 2 === 1;
}

function closingTicks(line: string, from: number, ticks: number): number {
  const run = /`+/g;
  run.lastIndex = from;
  for (let found = run.exec(line); found; found = run.exec(line)) if (found[0].length === ticks) return run.lastIndex;
  return -1;
}

function escapeHtml(text: string): string {
  const shown = text.replaceAll("<", "&lt;");
  return shown.replaceAll("![", (found, at: number) => (isEscaped(shown, at) ? found : `\\${found}`));
}
