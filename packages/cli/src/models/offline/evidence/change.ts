import { createHash } from "node:crypto";
import {
  describeDenial,
  FAILED_MAX,
  has,
  isChangeOf,
  type KnownFacts,
  lookAt,
  mayHaveRun,
  oneLine,
  sameText,
  type WantedCall,
  wasInterruptedTooOften,
} from "./known.ts";
import { isPart } from "./output.ts";
import type { PastCall } from "./talk.ts";

/** A change to a file that is to be made. */
export type Change =
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | { readonly kind: "append"; readonly path: string; readonly line: string }
  | { readonly kind: "replace"; readonly path: string; readonly old: string; readonly new: string };

export type ChangeStatus =
  /** `changed`: by this task, not before it. */
  | { readonly state: "reached"; readonly to: number; readonly changed: boolean }
  | { readonly state: "hopeless"; readonly why: string; readonly to: number }
  /** `goal`: a digest of what the file will contain if a change in doubt took effect; for summaries. */
  | { readonly state: "ask"; readonly calls: readonly WantedCall[]; readonly goal?: string };

export interface ChangeOptions {
  /** Calls before this index belong to earlier steps. */
  readonly from: number;
  /** Read the file afterwards even if the tool reported success. */
  readonly checks?: boolean;
  /** From a summary: if the file's text has this digest, the change has been made. */
  readonly goal?: string | undefined;
}

/**
 * How far a change has got, and what to do next. A change with an unknown outcome is retried only once the file shows
 * that it did not take effect: writing is idempotent, appending and replacing are not.
 */
export function checkChange(
  known: KnownFacts,
  change: Change,
  { from, checks = false, goal }: ChangeOptions,
): ChangeStatus {
  const mine = known.calls.slice(from).filter((call) => isChangeOf(call, change.path));
  const refused = mine.find(({ outcome }) => outcome.kind === "denied");
  if (refused)
    return { state: "hopeless", why: describeDenial(refused.outcome.text), to: known.calls.indexOf(refused) + 1 };
  const tries = mine.filter(mayHaveRun);
  const last = tries.at(-1);
  const to = last ? known.calls.indexOf(last) + 1 : from;
  if (last && isDone(last) && !checks) return { state: "reached", to, changed: true };
  if (wasInterruptedTooOften(mine)) return { state: "hopeless", why: "it was interrupted too often", to };
  if (!last && change.kind === "write" && goal === undefined) {
    return ask(known, { name: "write", input: { path: change.path, content: change.content } }, from);
  }
  if (!has(known, "read")) return withoutLooking(known, change, last, to);
  const found = lookAt(known, change.path, from);
  if (found.state === "ask") {
    const aim = last ? goalOf(last) : goal;
    return aim === undefined ? found : { ...found, goal: aim };
  }
  if (found.state === "hopeless") return found;
  const text = found.state === "known" ? found.text : null;
  if (last && isDone(last) && text !== null && isPart(text)) return { state: "reached", to: found.to, changed: true };
  const isReached = last ? tookEffect(last, text) : text !== null && goal !== undefined && digest(text) === goal;
  if (isReached) return { state: "reached", to: Math.max(to, found.to), changed: true };
  const failures = tries.filter(({ outcome }) => outcome.kind !== "unknown");
  if (failures.length >= FAILED_MAX) {
    return { state: "hopeless", why: oneLine(failures.at(-1)!.outcome.text), to: found.to };
  }
  return next(known, change, text, found.to);
}

/** The change, given the file's current text; null if there is no file. */
function next(known: KnownFacts, change: Change, text: string | null, to: number): ChangeStatus {
  const { path } = change;
  switch (change.kind) {
    case "write":
      return ask(known, { name: "write", input: { path, content: change.content } }, to);
    case "append": {
      if (text !== null && isPart(text)) return { state: "hopeless", why: "the file is too long for me", to };
      const before = text === null || text === "" || text.endsWith("\n") ? (text ?? "") : `${text}\n`;
      return ask(known, { name: "write", input: { path, content: `${before}${change.line}\n` } }, to);
    }
    case "replace": {
      if (text === null) return { state: "hopeless", why: "there is no such file", to };
      if (!text.includes(change.old) && !isPart(text)) {
        if (change.new !== "" && text.includes(change.new)) return { state: "reached", to, changed: false };
        return { state: "hopeless", why: `"${oneLine(change.old)}" is not in it`, to };
      }
      // The old text may still be there after such a change, so write and compare the whole text.
      if (change.new.includes(change.old)) {
        if (isPart(text)) return { state: "hopeless", why: "the file is too long for me", to };
        return ask(known, { name: "write", input: { path, content: text.replaceAll(change.old, change.new) } }, to);
      }
      return ask(known, { name: "edit", input: { path, old: change.old, new: change.new, all: true } }, to);
    }
  }
}

function withoutLooking(known: KnownFacts, change: Change, last: PastCall | undefined, to: number): ChangeStatus {
  if (last && isDone(last)) return { state: "reached", to, changed: true };
  if (last && change.kind !== "write") {
    return { state: "hopeless", why: "its outcome is not known, and I cannot look", to };
  }
  if (last?.outcome.kind === "failed") return { state: "hopeless", why: oneLine(last.outcome.text), to };
  if (change.kind === "append") return { state: "hopeless", why: "I cannot read what is in it", to };
  const { path } = change;
  return change.kind === "write"
    ? ask(known, { name: "write", input: { path, content: change.content } }, to)
    : ask(known, { name: "edit", input: { path, old: change.old, new: change.new, all: true } }, to);
}

function ask(known: KnownFacts, wanted: WantedCall, to: number): ChangeStatus {
  if (!has(known, wanted.name)) return { state: "hopeless", why: `there is no tool "${wanted.name}"`, to };
  return { state: "ask", calls: [wanted] };
}

const isDone = ({ outcome }: PastCall): boolean => outcome.kind === "done" || outcome.kind === "forgotten";

/** Judged by the file's text after the call. */
function tookEffect({ name, input }: PastCall, text: string | null): boolean {
  if (text === null) return false;
  if (name === "write") return typeof input["content"] === "string" && sameText(text, input["content"]);
  return typeof input["old"] === "string" && !text.includes(input["old"]) && !isPart(text);
}

/** For an edit, only that it was tried: whether the old text is gone shows whether it took effect. */
function goalOf({ name, input }: PastCall): string {
  return name === "write" && typeof input["content"] === "string" ? digest(input["content"]) : "tried";
}

function digest(text: string): string {
  return createHash("sha256").update(text.replace(/\n$/, "")).digest("hex").slice(0, 16);
}
