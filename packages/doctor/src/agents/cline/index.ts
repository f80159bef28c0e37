import { basename } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import { readDocument } from "../../document/read-document.ts";
import type { Door } from "../../files/door.ts";
import { LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { screenFormat, sessionFormat, taskFormat } from "./format.ts";
import { historyProblems } from "./history.ts";
import {
  API,
  homesOf,
  isListAt,
  isOfCommand,
  isSession,
  manifestOf,
  placesIn,
  SCREEN,
  SCREEN_START,
  screenOf,
} from "./places.ts";
import { plan } from "./plan.ts";
import { twinsOf } from "./twins.ts";

/** Cline: the command (`~/.cline/data/sessions`), and the extension of editors (`tasks` in its storage). */
export const cline: Agent = {
  name: "cline",
  title: "Cline",
  programs: ["cline"],
  versions: ["3.0.65"],
  // It closes the calls of an interrupted turn when it goes on.
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "none" },
  plan,
  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    ...([
      "header-missing",
      "header-damaged",
      "call-without-result",
      "result-without-call",
      "result-before-call",
    ] as const),
    ...(["bad-tool-input", "poisoned-result", "empty-file", "stub", "index-missing", "doubled-id"] as const),
  ]),

  homes: homesOf,

  detect({ isFolder, names, head, path }) {
    if (isFolder) return isSession(path, new Set(names)) ? 1 : 0;
    const text = Buffer.from(head.subarray(0, 4_096))
      .toString("utf8")
      .replace(/^\ufeff/, "");
    if (
      /^\s*\{\s*"version"\s*:\s*1\s*,/.test(text) &&
      /"(?:sessionId|messages)"\s*:/.test(text) &&
      /"(?:agent|origin)"\s*:/.test(text)
    )
      return 0.95;
    if (/^\s*\[\s*\{\s*"role"\s*:\s*"(?:user|assistant)"/.test(text)) return 0.9;
    if (SCREEN_START.test(text)) return 0.9;
    return basename(path) === API || basename(path) === SCREEN ? 0.5 : 0;
  },

  find: placesIn,

  async read(session, door) {
    return isListAt(session.path, door) ? readTask(session, door) : readSession(session, door);
  },
};

function* readSession(session: SessionPlace, door: Door): Generator<ReadItem> {
  const { path, parts } = session;
  // One that was only begun has nothing to say.
  const isNew = door.facts(path) === null && manifestOf(path, door)["prompt"] === undefined;
  if (!isNew || twinsOf(session, door).length > 0) yield* readDocument(path, door, sessionFormat);
  for (const part of parts)
    if (isOfCommand(part)) yield* readDocument(part, door, sessionFormat, basename(part, ".messages.json"));
}

function* readTask(session: SessionPlace, door: Door): Generator<ReadItem> {
  const { path } = session;
  let hasMessages = false;
  for (const item of readDocument(path, door, taskFormat)) {
    hasMessages ||= item.type === "problem" || item.record.kind !== "facts";
    yield item;
  }
  const screen = screenOf(session, door);
  // Another list of messages than a task is alone.
  if (screen === null) return;
  const place = { file: path, line: null, offset: null };
  if (!hasMessages && twinsOf(session, door).some(({ role }) => role === "assistant"))
    yield { type: "problem", problem: problem("stub", place, { detail: "no messages" }) };
  yield* readDocument(screen, door, screenFormat);
  for (const found of historyProblems(session, door)) yield { type: "problem", problem: found };
}
