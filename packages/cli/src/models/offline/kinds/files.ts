import { defined } from "../../../defined.ts";
import { type Change, checkChange } from "../evidence/change.ts";
import { batch, type Job, type Step, several, stringsIn } from "../evidence/job.ts";
import { look, lookAt, oneLine, type WantedCall } from "../evidence/known.ts";
import { countOf } from "../evidence/output.ts";
import { samePath } from "../evidence/path.ts";

/** "write a.txt: hello", "append log.md: a line", "edit a.txt: replace "x" with "y"". */
export function changeJob(change: Change): Job {
  return {
    title: titleOf(change),
    next(known, from, before) {
      const goal = typeof before["goal"] === "string" ? before["goal"] : undefined;
      if (before["done"] === true) return { kind: "answer", text: done(change, true), to: from, progress: before };
      const standing = checkChange(known, change, { from, goal });
      switch (standing.state) {
        case "ask": {
          const progress = defined({ goal: standing.goal });
          return { kind: "call", calls: standing.calls, thought: thoughtOf(change, standing.calls), progress };
        }
        case "reached":
          return { kind: "answer", text: done(change, standing.changed), to: standing.to, progress: { done: true } };
        case "hopeless":
          return {
            kind: "answer",
            text: `I did not ${titleOf(change)}: ${standing.why}.`,
            to: standing.to,
            progress: { done: true },
          };
      }
    },
  };
}

function titleOf(change: Change): string {
  switch (change.kind) {
    case "write":
      return `write ${change.path}`;
    case "append":
      return `append to ${change.path}`;
    case "replace":
      return `edit ${change.path}`;
  }
}

function done(change: Change, changed: boolean): string {
  switch (change.kind) {
    case "write":
      return `Wrote \`${change.path}\` (${several(change.content.length, "character")}).`;
    case "append":
      return `Added a line to \`${change.path}\`.`;
    case "replace":
      return changed
        ? `Replaced "${oneLine(change.old)}" by "${oneLine(change.new)}" in \`${change.path}\`.`
        : `\`${change.path}\` had "${oneLine(change.new)}" already.`;
  }
}

function thoughtOf(change: Change, calls: readonly WantedCall[]): string {
  return calls[0]?.name === "read"
    ? `I need to see what is in ${change.path} before I ${titleOf(change)}.`
    : `Now I ${titleOf(change)}.`;
}

/** "read a.txt and b.txt": all at once. */
export function readJob(paths: readonly string[]): Job {
  return {
    title: `read ${paths.join(", ")}`,
    next(known, from, before): Step {
      const rows = stringsIn(before["rows"]);
      const calls: WantedCall[] = [];
      let to = from;
      for (const path of paths.slice(rows.length)) {
        const found = lookAt(known, path, from);
        if (found.state === "ask") {
          calls.push(...found.calls);
          continue;
        }
        to = Math.max(to, found.to);
        if (calls.length === 0) rows.push(rowOf(path, found));
      }
      const progress = { rows };
      if (calls.length > 0) {
        return {
          kind: "call",
          calls: batch(known, calls),
          thought: `I read ${several(calls.length, "file")}.`,
          progress,
        };
      }
      return { kind: "answer", text: rows.join("\n"), to, progress };
    },
  };
}

function rowOf(path: string, found: Exclude<ReturnType<typeof lookAt>, { state: "ask" }>): string {
  if (found.state === "missing") return `- \`${path}\`: there is no such file.`;
  if (found.state === "hopeless") return `- \`${path}\`: not read, since ${found.why}.`;
  const { lines, words } = countOf(found.text);
  return `- \`${path}\`: ${several(lines, "line")}, ${several(words, "word")}. It begins: ${oneLine(found.text.slice(0, 120))}`;
}

/** "list src" and "search for x in src": one call, and its result. */
export function lookJob(title: string, wanted: WantedCall): Job {
  return {
    title,
    next(known, from, before): Step {
      if (typeof before["text"] === "string")
        return { kind: "answer", text: before["text"], to: from, progress: before };
      const found = look(known, wanted, ({ input }) => sameLook(input, wanted.input), from);
      if (found.state === "ask") return { kind: "call", calls: found.calls, thought: `I ${title}.`, progress: {} };
      const text =
        found.state === "known"
          ? `\`\`\`\n${found.text.slice(0, 4_000)}\n\`\`\``
          : found.state === "missing"
            ? "There is nothing at that path."
            : `I did not ${title}: ${found.why}.`;
      return { kind: "answer", text, to: found.to, progress: { text: text.slice(0, 500) } };
    },
  };
}

export function sameLook(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  return a["pattern"] === b["pattern"] && samePath(a["path"] ?? ".", b["path"] ?? ".");
}
