import { checkChange } from "../evidence/change.ts";
import { batch, type Job, type Step, several, stringsIn } from "../evidence/job.ts";
import { FORGOTTEN, has, type KnownFacts, look, lookAt, type WantedCall } from "../evidence/known.ts";
import { countOf, isPart, parseListedFiles } from "../evidence/output.ts";
import { samePath } from "../evidence/path.ts";
import type { Progress } from "../evidence/progress.ts";
import { sameLook } from "./files.ts";

interface Row {
  readonly lines: number;
  readonly words: number;
}

/** "count words in docs": reads all files in parallel, writes a report, answers with the table. */
export function countJob(folder: string, report: string): Job {
  return {
    title: `count words and lines in ${folder}`,
    next(known, from, before): Step {
      const listed = filesIn(known, folder, from, before);
      if (listed.state === "ask") {
        // Keep what is already counted, even if the list is lost.
        const { rows, left } = tally(known, filesRead(known, folder, report, from), from, before);
        const progress = Object.keys({ ...rows, ...left }).length > 0 ? { ...before, rows, left } : before;
        return { kind: "call", calls: listed.calls, thought: `First I see what is in ${folder}.`, progress };
      }
      if (listed.state === "hopeless") {
        const text = `I could not see what is in ${folder}: ${listed.why}.`;
        return { kind: "answer", text, to: listed.to, progress: { ...before, hopeless: listed.why } };
      }
      // Do not count the report: after an interruption it may already exist.
      const files = listed.files.filter((path) => !samePath(path, report));
      return count(known, files, report, from, listed.to, before);
    },
  };
}

interface Tally {
  readonly rows: Readonly<Record<string, Row>>;
  /** Files that cannot be counted, and why. */
  readonly left: Readonly<Record<string, string>>;
  /** Reads that are still to be made. */
  readonly calls: readonly WantedCall[];
  readonly to: number;
}

function tally(known: KnownFacts, files: readonly string[], from: number, before: Progress): Tally {
  const rows = { ...(before["rows"] as Record<string, Row> | undefined) };
  const left = { ...(before["left"] as Record<string, string> | undefined) };
  const calls: WantedCall[] = [];
  let to = from;
  for (const path of files) {
    if (path in rows || path in left) continue;
    const found = lookAt(known, path, from);
    if (found.state === "ask") {
      calls.push(...found.calls);
      continue;
    }
    to = Math.max(to, found.to);
    if (found.state === "known" && isPart(found.text)) left[path] = "it is too long for me";
    else if (found.state === "known") rows[path] = countOf(found.text);
    else left[path] = found.state === "missing" ? "it is gone" : found.why;
  }
  return { rows, left, calls, to };
}

/** The files in the folder that were read for this task. */
function filesRead(known: KnownFacts, folder: string, report: string, from: number): string[] {
  const paths = known.calls
    .slice(from)
    .flatMap(({ name, input }) => (name === "read" ? stringsIn([input["path"]]) : []));
  const isInside = (path: string): boolean => folder === "." || path.startsWith(`${folder}/`);
  return paths.filter((path) => isInside(path) && !samePath(path, report));
}

function count(
  known: KnownFacts,
  files: readonly string[],
  report: string,
  from: number,
  listedTo: number,
  before: Step["progress"],
): Step {
  const { rows, left, calls, to: read } = tally(known, files, from, before);
  const to = Math.max(listedTo, read);
  const progress = { files, rows, left };
  if (calls.length > 0) {
    const done = Object.keys(rows).length;
    const thought = `${several(files.length, "file")} to count, ${done} done. I read the next ones at once.`;
    return { kind: "call", calls: batch(known, calls), thought, progress };
  }
  const table = tableOf(rows, left);
  const change = { kind: "write", path: report, content: `${table}\n` } as const;
  const standing = checkChange(known, change, { from });
  if (standing.state === "ask") {
    const thought = "Everything is counted. I write the report.";
    return { kind: "call", calls: standing.calls, thought, progress };
  }
  const where =
    standing.state === "reached"
      ? `The report is in \`${report}\`.`
      : `There is no report in \`${report}\`: ${standing.why}.`;
  return { kind: "answer", text: `${table}\n\n${where}`, to: Math.max(to, standing.to), progress };
}

function tableOf(rows: Readonly<Record<string, Row>>, left: Readonly<Record<string, string>>): string {
  const out = ["| file | lines | words |", "|---|---:|---:|"];
  let lines = 0;
  let words = 0;
  for (const [path, row] of Object.entries(rows).sort(([a], [b]) => (a < b ? -1 : 1))) {
    out.push(`| ${path} | ${row.lines} | ${row.words} |`);
    lines += row.lines;
    words += row.words;
  }
  out.push(`| **together** | ${lines} | ${words} |`);
  for (const [path, why] of Object.entries(left)) out.push("", `Not counted: ${path}, since ${why}.`);
  return out.join("\n");
}

type Listed =
  | { readonly state: "known"; readonly files: readonly string[]; readonly to: number }
  | { readonly state: "hopeless"; readonly why: string; readonly to: number }
  | { readonly state: "ask"; readonly calls: readonly WantedCall[] };

function filesIn(known: KnownFacts, folder: string, from: number, before: Progress): Listed {
  const carried = stringsIn(before["files"]);
  if (typeof before["hopeless"] === "string") return { state: "hopeless", why: before["hopeless"], to: from };
  if (carried.length > 0) return { state: "known", files: carried, to: from };
  if (!has(known, "list")) return { state: "hopeless", why: 'there is no tool "list"', to: from };
  const wanted: WantedCall = { name: "list", input: { path: folder } };
  const found = look(known, wanted, ({ input }) => sameLook(input, wanted.input), from);
  // It was left out of the summary request; after the summary there is room for it again.
  if (found.state === "hopeless" && found.why === FORGOTTEN) return { state: "ask", calls: [wanted] };
  if (found.state === "missing") return { state: "hopeless", why: "there is no such folder", to: found.to };
  if (found.state !== "known") return found;
  return { state: "known", files: parseListedFiles(found.text, folder), to: found.to };
}
