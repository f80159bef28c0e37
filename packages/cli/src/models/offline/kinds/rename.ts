import { checkChange } from "../evidence/change.ts";
import { batch, type Job, type Step, several, stringsIn } from "../evidence/job.ts";
import {
  type Answerability,
  FORGOTTEN,
  has,
  isChangeOf,
  type KnownFacts,
  look,
  lookAt,
  mayHaveRun,
  type WantedCall,
} from "../evidence/known.ts";
import { filesFound, isCut, isPart, parseListedFiles } from "../evidence/output.ts";
import type { Progress } from "../evidence/progress.ts";
import { sameLook } from "./files.ts";

/**
 * "rename X to Y in src": every occurrence of the text. Finds the files, reads and changes them in parallel, checks the
 * result, and reports.
 */
export function renameJob(old: string, name: string, folder: string): Job {
  return {
    title: `rename ${old} to ${name} in ${folder}`,
    next(known, from, before): Step {
      const found = findFiles(known, old, folder, from, before);
      if (found.state === "ask") {
        const thought = `First I look where "${old}" occurs in ${folder}.`;
        // Do not search again: the search does not name all files.
        const progress = found.calls[0]?.name === "list" ? { ...before, listing: true } : before;
        return { kind: "call", calls: found.calls, thought, progress };
      }
      if (found.state === "hopeless") {
        const text = `I could not look for "${old}" in ${folder}: ${found.why}.`;
        return { kind: "answer", text, to: found.to, progress: { ...before, hopeless: found.why } };
      }
      return change(known, found.files, { old, name, folder }, found.to, from, before);
    },
  };
}

interface Names {
  readonly old: string;
  readonly name: string;
  readonly folder: string;
}

function change(
  known: KnownFacts,
  files: readonly string[],
  { old, name, folder }: Names,
  foundTo: number,
  from: number,
  before: Step["progress"],
): Step {
  const changed = new Set(stringsIn(before["changed"]));
  const untouched = new Set(stringsIn(before["untouched"]));
  const failed = { ...(before["failed"] as Record<string, string> | undefined) };
  const goals = { ...(before["goals"] as Record<string, string> | undefined) };
  /** Read and ready to be changed. Summaries keep this, so that the file need not be read again. */
  const ready = new Set<string>();
  const wasReady = new Set(stringsIn(before["ready"]));
  const reads: WantedCall[] = [];
  const edits: WantedCall[] = [];
  let to = foundTo;
  for (const path of files) {
    // A few files at a time, from reading to checking: what is in progress must fit into the window.
    if (reads.length + edits.length >= known.parallelMax) break;
    if (changed.has(path) || untouched.has(path) || path in failed) continue;
    const isTried = known.calls.slice(from).some((call) => isChangeOf(call, path) && mayHaveRun(call));
    const view = isTried ? null : lookAt(known, path, from);
    if (view?.state === "known" && !view.text.includes(old) && !isPart(view.text)) {
      (path in goals ? changed : untouched).add(path);
      to = Math.max(to, view.to);
      continue;
    }
    const aim = { kind: "replace", path, old, new: name } as const;
    const standing = checkChange(known, aim, { from, checks: true, goal: goals[path] });
    if (standing.state === "reached") {
      (standing.changed ? changed : untouched).add(path);
      delete goals[path];
    }
    if (standing.state === "hopeless") failed[path] = standing.why;
    if (standing.state !== "ask") {
      to = Math.max(to, standing.to);
      continue;
    }
    if (standing.goal !== undefined) goals[path] = standing.goal;
    const isEdit = standing.calls[0]?.name === "edit";
    if (wasReady.has(path) && !isTried && !isEdit && !name.includes(old)) {
      edits.push({ name: "edit", input: { path, old, new: name, all: true } });
      ready.add(path);
      continue;
    }
    if (isEdit) ready.add(path);
    for (const call of standing.calls) (call.name === "read" ? reads : edits).push(call);
  }
  const progress = {
    files,
    changed: [...changed],
    untouched: [...untouched],
    failed,
    goals,
    ready: [...ready].filter((path) => !(path in goals)),
  };
  const where = `${changed.size} of ${several(files.length, "file")}`;
  if (reads.length > 0) {
    const thought =
      changed.size + edits.length === 0
        ? `"${old}" occurs in ${several(files.length, "file")}. I read before I change.`
        : `I look whether the changes came true (${where} so far).`;
    return { kind: "call", calls: batch(known, reads), thought, progress };
  }
  if (edits.length > 0) {
    return {
      kind: "call",
      calls: batch(known, edits),
      thought: `I change "${old}" to "${name}" (${where} done).`,
      progress,
    };
  }
  const text = answer({ old, name, folder }, [...changed], failed);
  return { kind: "answer", text, to, thought: "Everything is checked. I sum up.", progress };
}

type FileSearch =
  | { readonly state: "known"; readonly files: readonly string[]; readonly to: number }
  | { readonly state: "hopeless"; readonly why: string; readonly to: number }
  | { readonly state: "ask"; readonly calls: readonly WantedCall[] };

/** The files that contain the text; or all files of the folder, if the search was cut off or is not available. */
function findFiles(known: KnownFacts, old: string, folder: string, from: number, before: Progress): FileSearch {
  const carried = stringsIn(before["files"]);
  if (carried.length > 0) return { state: "known", files: carried, to: from };
  if (typeof before["hopeless"] === "string") return { state: "hopeless", why: before["hopeless"], to: from };
  if (has(known, "search") && before["listing"] !== true) {
    const found = firstAnswer(known, { name: "search", input: { pattern: escapeRegExp(old), path: folder } }, from);
    if (found.state === "ask") return found;
    if (found.state === "missing") return { state: "hopeless", why: "there is no such folder", to: found.to };
    const isAll = found.state === "known" ? !isCut(found.text) : found.why !== FORGOTTEN;
    if (isAll || !has(known, "list"))
      return found.state === "known" ? { ...found, files: filesFound(found.text) } : found;
  }
  const found = firstAnswer(known, { name: "list", input: { path: folder } }, from);
  if (found.state === "missing") return { state: "hopeless", why: "there is no such folder", to: found.to };
  return found.state === "known" ? { ...found, files: parseListedFiles(found.text, folder) } : found;
}

/** The first answer, because a later one would not name files that are already changed. */
function firstAnswer(known: KnownFacts, wanted: WantedCall, from: number): Answerability {
  const at = known.calls.findIndex(
    ({ name, input, outcome }, index) =>
      index >= from && name === wanted.name && sameLook(input, wanted.input) && outcome.kind === "done",
  );
  if (at >= 0) return { state: "known", text: known.calls[at]!.outcome.text, to: at + 1 };
  return look(known, wanted, ({ input }) => sameLook(input, wanted.input), from);
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function answer({ old, name, folder }: Names, changed: readonly string[], failed: Record<string, string>): string {
  const lines =
    changed.length === 0
      ? [`Nothing was renamed: "${old}" does not occur in ${folder}, or could not be changed.`]
      : [`Renamed \`${old}\` to \`${name}\` in ${several(changed.length, "file")}:`, ""];
  for (const path of [...changed].sort()) lines.push(`- \`${path}\``);
  const left = Object.entries(failed);
  if (left.length > 0) lines.push("", "Not changed:", "");
  for (const [path, why] of left) lines.push(`- \`${path}\`: ${why}`);
  return lines.join("\n");
}
