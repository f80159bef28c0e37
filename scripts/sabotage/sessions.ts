import type { Sabotage } from "./list.ts";

const SESSIONS = ["unit/session-", "unit/resume-table", "unit/fold.test"];

/** Ways to break the promises of sessions. */
export const sessionSabotages: readonly Sabotage[] = [
  {
    name: "session: a tool runs before its start is recorded",
    file: "session/tools.ts",
    find: "      await log.append([record]);\n      return running;",
    replace: "      void log.append([record]);\n      return running;",
    look: SESSIONS,
  },
  {
    name: "session: a tool whose outcome is unknown is run again",
    file: "session/resume.ts",
    find: '"outcome-unknown": { close: "close", rerun: "keep if safe" }',
    replace: '"outcome-unknown": { close: "close", rerun: "keep" }',
    look: SESSIONS,
  },
  {
    name: "session: never started is said of writers that do not record starts",
    file: "session/turn-state.ts",
    find: "for (const { intents } of writers) if (!intents) return false;",
    replace: "for (const { intents } of writers) if (intents === undefined) return false;",
    look: SESSIONS,
  },
  {
    name: "session: the turn before is not said to have been left",
    file: "session/resume.ts",
    find: '  return [{ kind: "turn.ended", turn: turn.number, outcome }];',
    replace: "  return [];",
    look: SESSIONS,
  },
  {
    name: "session: the end of a turn is a write of its own, behind its answer",
    file: "session/turn.ts",
    find: "const unit = [...closed, ...items.records, ...ended];\n    const other = (taken.isAnswer || end) && this.#draft !== draft ? this.#draft : null;\n    const appended = log.append(unit);",
    replace:
      "const other = (taken.isAnswer || end) && this.#draft !== draft ? this.#draft : null;\n    const first = log.append([...closed, ...items.records]);\n    const appended = end ? log.append(ended) : first;",
    look: SESSIONS,
  },
  {
    name: "sync: the end of a turn is a write of its own, behind its answer",
    file: "session/sync-plan.ts",
    find: 'if (last?.kind === "append") steps[steps.length - 1] = { ...last, end: true };\n    else steps.push',
    replace: "void last;\n    steps.push",
    look: ["unit/sync-plan"],
  },
  {
    name: "session: what Holdfast refuses inside a tool is told to the model",
    file: "session/turn.ts",
    find: "fault = this.signal.aborted ? null : this.#faultOf(error);",
    replace: "fault = null;",
    look: SESSIONS,
  },
  {
    name: "session: the model goes on, and what it saw of running tools is not kept",
    file: "session/turn.ts",
    find: "const entries = isAnother ? this.#closings() : [];",
    replace: "const entries: RepairEntry[] = isAnother ? [] : [];",
    look: SESSIONS,
  },
  {
    name: "session: what is said while the model answers stands before its answer",
    file: "session/turn.ts",
    find: 'return [{ kind: "repair", turn: this.number, asked: asked.head, entries: [...asked.entries] }];',
    replace: 'return [{ kind: "repair", turn: this.number, entries: [...asked.entries] }];',
    look: SESSIONS,
  },
  {
    name: "session: a delivered prompt stays in the queue",
    file: "session/unit.ts",
    find: 'records.push({ kind: "queue.take", id: queued.id });',
    replace: "void queued.id;",
    look: SESSIONS,
  },
  {
    name: "session: what the caller changes later changes what is shown",
    file: "session/plain-copy.ts",
    find: '    if (typeof member === "object" && member !== null) members[name] = frozenCopy(member);\n    else if',
    replace: "    if",
    look: SESSIONS,
  },
  {
    name: "session: an id that was seen before is written again",
    file: "session/unit.ts",
    find: "  if (given !== null) {",
    replace: "  if (given === null) {",
    look: SESSIONS,
  },
  {
    name: "session: an abort forgets what was streamed last",
    file: "session/turn.ts",
    find: "    else void draft?.flush();",
    replace: "    else void draft;",
    look: SESSIONS,
  },
  {
    name: "session: half a character is sent to the model",
    file: "session/view.ts",
    find: "return isFit ? messages : Object.freeze(messages.map(sent));",
    replace: "return isFit || messages.length > 0 ? messages : Object.freeze(messages.map(sent));",
    look: ["unit/well-formed"],
  },
  {
    name: "session: who stopped a turn is told to the model at any length",
    file: "session/words.ts",
    find: "return oneLine(name, NAME_CHARS);",
    replace: "return name.slice(0, NAME_CHARS * 10_000);",
    look: ["unit/words"],
  },
  {
    name: "session: the live end is found from the beginning of the conversation each time",
    file: "session/transcript.ts",
    find: "const isKept = begins >= 0 && begins < this.#staleFrom;",
    replace: "const isKept = begins >= 0 && begins < 0 * this.#staleFrom;",
    look: ["unit/dialect-cost"],
  },
  {
    name: "openai-responses: reasoning is sent in front of whatever came next",
    file: "dialects/openai-responses.ts",
    find: "const isFollowed = kept.has(next) && entries[at]!.step === entries[next]!.step;",
    replace: "const isFollowed = kept.has(next) && together(entries, at, next);",
    look: ["unit/dialect-reasoning"],
  },
];
