import type { Agent, SessionPlace } from "../contract/agent.ts";
import { type Problem, type ProblemKind, problem } from "../contract/problem.ts";
import type { RecordState, SessionRecord, Unit } from "../contract/record.ts";
import { Door } from "../files/door.ts";
import type { SourceFile } from "../files/source-file.ts";
import { ConversationJudge, judged } from "../judge/judge.ts";
import { type LostContent, lostSinceKept } from "../keep/lost-content.ts";

const PROBLEMS_MAX = 10_000;

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
 * another: a database that they share is then copied and checked once.
 */
export async function diagnose(
  agent: Agent,
  session: SessionPlace,
  run: Door | null = null,
  see?: SeeRecord,
): Promise<Diagnosis> {
  using door = run?.inner() ?? new Door();
  const files = new Map<string, SourceFile>();
  const judge = new ConversationJudge(agent.rules, ({ file, offset }, length) => {
    let opened = files.get(file);
    if (!opened) {
      opened = door.openRaw(file);
      files.set(file, opened);
    }
    return opened.read(offset!, length);
  });
  const records: Record<RecordState, number> = { intact: 0, recovered: 0, partial: 0, unreadable: 0 };
  const units: Partial<Record<Unit["type"], number>> = {};
  const problems: Problem[] = [];
  let problemsLeftOut = 0;
  let title: string | null = null;
  const lost = lostSinceKept(session, door);
  if (lost) problems.push(keptProblem(lost, session.path));
  if (lost?.kind === "deleted-file")
    return { session, title, records, units, problems, problemsLeftOut, callsInterrupted: 0 };
  for (const item of judged(await agent.read(session, door), judge)) {
    if (item.type === "problem") {
      if (problems.length < PROBLEMS_MAX) problems.push(withKnownFix(item.problem, agent));
      else problemsLeftOut++;
      continue;
    }
    const pause = see?.(item.record);
    if (pause) await pause;
    records[item.record.state]++;
    for (const unit of item.record.units) {
      units[unit.type] = (units[unit.type] ?? 0) + 1;
      if (unit.type === "title") title = unit.text;
    }
  }
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
  if (repairs?.has(found.kind) || LEFT_ALONE.has(found.kind)) return found;
  return { ...found, fix: `None yet for ${title}. holdfast import saves what can be read.` };
}

const LEFT_ALONE: ReadonlySet<ProblemKind> = new Set(["unknown-version", "unopenable"]);
