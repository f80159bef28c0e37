import type { Agent, SessionPlace } from "../contract/agent.ts";
import { type Problem, type ProblemKind, problem } from "../contract/problem.ts";
import type { RecordState, SessionRecord, Unit } from "../contract/record.ts";
import { Door } from "../files/door.ts";
import type { SourceFile } from "../files/source-file.ts";
import { ConversationJudge } from "../judge/judge.ts";
import { type LostContent, lostSinceKept } from "../keep/lost-content.ts";
import { permissionProblems } from "./permissions.ts";

const PROBLEMS_MAX = 10_000;
/** A file of 2 GB takes less than a minute. */
const LIMIT_MS = 10 * 60_000;

/** What was found in one session. */
export interface Diagnosis {
  readonly session: SessionPlace;
  readonly title: string | null;
  readonly records: Readonly<Record<RecordState, number>>;
  readonly units: Readonly<Partial<Record<Unit["type"], number>>>;
  /** At most 10,000; `problemsLeftOut` counts the others. */
  readonly problems: readonly Problem[];
  readonly problemsLeftOut: number;
  /** Calls that were running when the session was interrupted; the agent closes them when it resumes. */
  readonly callsInterrupted: number;
}

/** Sees each record on its way. What it returns is waited for; an error ends the reading. */
export type SeeRecord = (record: SessionRecord) => Promise<void> | undefined;

/**
 * Reads a session to its end and judges it. Changes nothing. `run` is the door of all sessions that are read one after
 * another: a database that they share is then copied and checked once. A session that takes longer than `limitMs` is
 * left where it is.
 */
export async function diagnose(
  agent: Agent,
  session: SessionPlace,
  run: Door | null = null,
  see?: SeeRecord,
  limitMs = LIMIT_MS,
): Promise<Diagnosis> {
  const deadline = performance.now() + limitMs;
  using door = run?.inner() ?? new Door();
  const files = new Map<string, SourceFile>();
  const judge = new ConversationJudge(agent.rules, ({ file, offset }, length) => {
    let opened = files.get(file);
    if (!opened) {
      opened = door.openAgain(file);
      files.set(file, opened);
    }
    return opened.read(offset!, length);
  });
  const records: Record<RecordState, number> = { intact: 0, recovered: 0, partial: 0, unreadable: 0 };
  const units: Partial<Record<Unit["type"], number>> = {};
  const sealed = permissionProblems(session, door);
  const problems: Problem[] = [...sealed];
  let problemsLeftOut = 0;
  let title: string | null = null;
  const lost = lostSinceKept(session, door);
  if (lost) problems.push(keptProblem(lost, session.path));
  if (lost?.kind === "deleted-file")
    return { session, title, records, units, problems, problemsLeftOut, callsInterrupted: 0 };
  const report = (found: Problem): void => {
    if (problems.length < PROBLEMS_MAX) problems.push(withKnownFix(found, agent));
    else problemsLeftOut++;
  };
  let isWhole = true;
  for (const item of await agent.read(session, door)) {
    // Others wait for their turn.
    if (performance.now() > deadline) {
      const detail = `reading it takes longer than ${Math.round(limitMs / 60_000)} minutes; the rest was not read`;
      problems.push(problem("unopenable", { file: session.path, line: null, offset: null }, { detail }));
      isWhole = false;
      break;
    }
    if (item.type === "problem") {
      const { kind, place } = item.problem;
      // Why it cannot be opened was said.
      if (kind === "unopenable" && sealed.some(({ place: { file } }) => file === place.file)) continue;
      report(item.problem);
      continue;
    }
    const { record } = item;
    const pause = see?.(record);
    if (pause) await pause;
    records[record.state]++;
    for (const unit of record.units) {
      units[unit.type] = (units[unit.type] ?? 0) + 1;
      if (unit.type === "title") title = unit.text;
    }
    for (const found of judge.add(record)) report(found);
  }
  if (isWhole) for (const found of judge.end()) report(found);
  const { callsInterrupted } = judge;
  return { session, title, records, units, problems, problemsLeftOut, callsInterrupted };
}

function keptProblem({ kind, had, has }: LostContent, file: string): Problem {
  const detail = `${had} bytes were kept, ${has} are there`;
  const fix = "Brings back what holdfast watch kept of it.";
  return problem(kind, { file, line: null, offset: null }, { detail, fix });
}

/** A fix is promised only where the agent's plan has one. */
function withKnownFix(found: Problem, { repairs, title }: Agent): Problem {
  if (repairs?.has(found.kind) || OF_NO_AGENT.has(found.kind)) return found;
  return { ...found, fix: `None yet for ${title}. holdfast import saves what can be read.` };
}

/** Repaired for every agent alike, or never. */
const OF_NO_AGENT: ReadonlySet<ProblemKind> = new Set(["unknown-version", "unopenable", "wrong-permissions"]);
