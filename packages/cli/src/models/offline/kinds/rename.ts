import { standingOf } from "../change.ts";
import { batch, type Job, type Step, several, stringsIn } from "../job.ts";
import { has, isChangeOf, type Known, look, lookAt, mayHaveRun, type Wanted } from "../known.ts";
import { filesFound, filesListed, isPart } from "../output.ts";
import { sameLook } from "./files.ts";

/**
 * "rename X to Y in src": every occurrence of the text. Finds the files, reads them in parallel, changes them in parallel, looks whether it came true, and sums up.
 */
export function renameJob(old: string, name: string, folder: string): Job {
  return {
    title: `rename ${old} to ${name} in ${folder}`,
    next(known, from, before): Step {
      const found = findFiles(known, old, folder, from, stringsIn(before["files"]));
      if (found.state === "ask") {
        const thought = `First I look where "${old}" occurs in ${folder}.`;
        return { kind: "call", calls: found.calls, thought, progress: before };
      }
      if (found.state === "hopeless") {
        const text = `I could not look for "${old}" in ${folder}: ${found.why}.`;
        return { kind: "answer", text, to: found.to, progress: before };
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
  known: Known,
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
  const reads: Wanted[] = [];
  const edits: Wanted[] = [];
  let to = foundTo;
  for (const path of files) {
    if (changed.has(path) || untouched.has(path) || path in failed) continue;
    const isTried = known.calls.slice(from).some((call) => isChangeOf(call, path) && mayHaveRun(call));
    const view = isTried ? null : lookAt(known, path, from);
    if (view?.state === "known" && !view.text.includes(old) && !isPart(view.text)) {
      (path in goals ? changed : untouched).add(path);
      to = Math.max(to, view.to);
      continue;
    }
    const aim = { kind: "replace", path, old, new: name } as const;
    const standing = standingOf(known, aim, { from, checks: true, goal: goals[path] });
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
    for (const call of standing.calls) (call.name === "read" ? reads : edits).push(call);
  }
  const progress = { files, changed: [...changed], untouched: [...untouched], failed, goals };
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

type Found =
  | { readonly state: "known"; readonly files: readonly string[]; readonly to: number }
  | { readonly state: "hopeless"; readonly why: string; readonly to: number }
  | { readonly state: "ask"; readonly calls: readonly Wanted[] };

function findFiles(known: Known, old: string, folder: string, from: number, carried: readonly string[]): Found {
  if (carried.length > 0) return { state: "known", files: carried, to: from };
  const isSearch = has(known, "search");
  const wanted: Wanted = isSearch
    ? { name: "search", input: { pattern: escaped(old), path: folder } }
    : { name: "list", input: { path: folder } };
  // The first answer counts: a later one would not name what is changed already.
  const at = known.calls.findIndex(
    (call, index) =>
      index >= from && call.name === wanted.name && sameLook(call.input, wanted.input) && call.outcome.kind === "done",
  );
  if (at >= 0) {
    const { text } = known.calls[at]!.outcome;
    return { state: "known", files: isSearch ? filesFound(text) : filesListed(text, folder), to: at + 1 };
  }
  const found = look(known, wanted, ({ input }) => sameLook(input, wanted.input), from);
  if (found.state === "missing") return { state: "hopeless", why: "there is no such folder", to: found.to };
  return found.state === "known" ? { state: "known", files: [], to: found.to } : found;
}

function escaped(text: string): string {
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
