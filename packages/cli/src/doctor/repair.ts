import { createInterface } from "node:readline/promises";
import {
  type Agent,
  type Backup,
  type Diagnosis,
  Door,
  type FoundSession,
  fix,
  isUndone,
  listBackups,
  type Plan,
  type Problem,
  planFix,
  Refused,
  undo,
} from "@holdfast/doctor";
import { credentials } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { plainLine } from "../terminal/plain.ts";
import { backupsFolder } from "./backups-folder.ts";
import { counted, DECLINED } from "./report.ts";

const SHOWN_CHARS_MAX = 160;

/** What came of the repair of one session. */
export interface Repair {
  readonly session: string;
  readonly path: string;
  /** Null if nothing was changed; `why` says why. */
  readonly backup: string | null;
  readonly why: string | null;
  readonly changes: readonly { readonly why: string; readonly grade: string; readonly offset: number | null }[];
  readonly lost: readonly string[];
  readonly problemsLeft: number;
  /** Their kinds. */
  readonly kindsLeft: readonly string[];
  /** Where the session is now, if the repair moved it. */
  readonly movedTo: string | null;
  /** What could be seen only after this repair, and is still to be repaired; null if it was all that could be done. */
  readonly next: Diagnosis | null;
}

export interface RepairOptions {
  readonly isDryRun: boolean;
  /** Asks before each; null: everything was agreed to. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
  readonly show: (line: string) => void;
  /** Where the files of sessions are kept. */
  readonly keptFolderOf: Door["keptFolderOf"];
}

/** Repairs one session, or shows what would be changed. */
export async function repair(
  { agent, session }: FoundSession,
  problems: readonly Problem[],
  options: RepairOptions,
): Promise<Repair> {
  using door = new Door();
  door.keptFolderOf = options.keptFolderOf;
  const known = { session: session.id, path: session.path };
  const none = { ...known, backup: null, changes: [], lost: [], movedTo: null, next: null, ...leftOf(problems) };
  try {
    const plan = await planFix(agent, session, door);
    if (plan === null) return { ...none, why: whyNothing(agent, problems) };
    const facts = { changes: changesOf(plan), lost: plan.lost };
    if (options.isDryRun) {
      for (const line of planLines(plan, door)) options.show(line);
      return { ...none, ...facts, why: "this was a dry run" };
    }
    const loss = plan.lost.length === 0 ? "nothing" : counted(plan.lost.length, "piece");
    const sum = `${counted(facts.changes.length, "change")}, ${loss} lost`;
    const question = `Repair ${agent.title} session ${session.id} (${sum})?`;
    if (options.ask && !(await options.ask(plainLine(question)))) return { ...none, ...facts, why: DECLINED };
    const fixed = await fix(agent, session, {
      backups: backupsFolder(),
      keptFolderOf: options.keptFolderOf,
    });
    if (fixed === null) return { ...none, why: "there is nothing to repair any more" };
    const { diagnosis } = fixed;
    const movedTo = diagnosis.session.path === session.path ? null : diagnosis.session.path;
    const isOnlyFirst = diagnosis.problems.length > 0 && fixed.plan.changes.every(({ type }) => type === "mode");
    const result = { backup: fixed.backup, why: null, movedTo, next: isOnlyFirst ? diagnosis : null };
    return { ...known, ...facts, ...result, ...leftOf(diagnosis.problems) };
  } catch (error) {
    // Whatever it is, it stops no other session.
    return { ...none, why: error instanceof Error ? error.message : String(error) };
  }
}

/** Why there is no plan. */
function whyNothing({ repairs }: Agent, problems: readonly Problem[]): string {
  const isKnown = problems.every(({ kind }) => repairs?.has(kind));
  return isKnown ? "what is lost was found nowhere else" : "no repair is known for this yet";
}

const leftOf = (problems: readonly Problem[]): Pick<Repair, "problemsLeft" | "kindsLeft"> => ({
  problemsLeft: problems.length,
  kindsLeft: [...new Set(problems.map(({ kind }) => kind))],
});

export function repairLines({ backup, why, changes, lost, movedTo, problemsLeft, kindsLeft }: Repair): string[] {
  if (backup === null) return [`          not repaired: ${plainLine(why!)}`];
  const left =
    problemsLeft === 0
      ? "the session is healthy"
      : `${counted(problemsLeft, "problem")} left (${kindsLeft.join(", ")})`;
  return [
    `          repaired: ${counted(changes.length, "change")}, ${left}. Backup ${backup}.`,
    ...(movedTo === null ? [] : [`          moved to ${plainLine(movedTo)}`]),
    ...lost.map((words) => `          lost: ${plainLine(words)}`),
  ];
}

/** Brings back what a fix replaced: of this id, or the latest. Returns what it did, in words. */
export function undoFix(id: string | null): string {
  using door = new Door();
  const folder = backupsFolder();
  const backups = listBackups(folder, door);
  const backup = backups.find((each) => (id === null ? !isUndone(folder, each) : each.id === id));
  if (!backup) throw new CommandError(EXIT.notFound, "BACKUP_UNKNOWN", unknownWords(id, backups));
  try {
    undo(folder, backup);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new CommandError(EXIT.failed, "NOT_UNDONE", `${error.path}: ${error.message}. Nothing was changed.`);
  }
  const paths = [...new Set(backup.steps.map(({ path }) => plainLine(path)))];
  return `Session ${plainLine(backup.session)} is as it was before the fix of ${plainLine(backup.at)}: ${paths.join(", ")}`;
}

/** Asks at the terminal: only "y" and "yes" mean yes. Ctrl+D is a no, Ctrl+C ends the command. */
export async function askAtTerminal(question: string): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  prompt.once("SIGINT", () => {
    prompt.close();
    process.stderr.write("\n");
    process.kill(process.pid, "SIGINT");
  });
  try {
    return /^y(?:es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim());
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "AbortError") throw error;
    process.stderr.write("\n");
    return false;
  } finally {
    prompt.close();
  }
}

function unknownWords(id: string | null, backups: readonly Backup[]): string {
  if (id === null) return "There is nothing to undo: no repair is in force.";
  const known = backups.slice(0, 5).map((backup) => backup.id);
  return `There is no backup ${id}. The latest are: ${known.join(", ") || "none"}. Nothing was changed.`;
}

function changesOf({ changes }: Plan): Repair["changes"] {
  return changes.flatMap((change): Repair["changes"] => {
    if (change.type === "edit") return change.edits.map(({ why, grade, offset }) => ({ why, grade, offset }));
    return [{ why: change.why, grade: "grade" in change ? change.grade : "intact", offset: null }];
  });
}

/** The difference that a plan makes, as text. */
function* planLines({ changes, lost }: Plan, door: Door): Generator<string> {
  for (const change of changes) {
    yield `--- ${plainLine(change.path)}`;
    if (change.type !== "edit") {
      yield `  ${change.type}${targetWords(change)}: ${plainLine(change.why)}`;
      continue;
    }
    const file = door.openRaw(change.path);
    for (const { offset, length, bytes, grade, why } of change.edits) {
      yield `@@ byte ${offset}, ${length} bytes become ${bytes.length} (${grade}): ${plainLine(why)}`;
      if (length > 0) yield `- ${shown(file.read(offset, Math.min(length, SHOWN_CHARS_MAX)), length)}`;
      if (bytes.length > 0) yield `+ ${shown(bytes, bytes.length)}`;
    }
  }
  for (const words of lost) yield `lost: ${plainLine(words)}`;
}

function targetWords(change: Plan["changes"][number]): string {
  if (change.type === "move") return ` to ${plainLine(change.to)}`;
  return change.type === "mode" ? ` ${change.mode.toString(8)}` : "";
}

function shown(bytes: Uint8Array, length: number): string {
  const text = plainLine(credentials(Buffer.from(bytes.subarray(0, SHOWN_CHARS_MAX)).toString("utf8")));
  return length > SHOWN_CHARS_MAX ? `${text}…` : text;
}
