import type { Agent, SessionPlace } from "../contract/agent.ts";
import type { Plan } from "../contract/plan.ts";
import type { ProblemKind } from "../contract/problem.ts";
import { type Diagnosis, diagnose } from "../diagnosis/diagnose.ts";
import { restorePermissions } from "../diagnosis/permissions.ts";
import { Door, Refused } from "../files/door.ts";
import { cancel, Executor, stampOf } from "./executor.ts";
import { planFromKept } from "./kept-plan.ts";
import { userOf } from "./open-files.ts";

/** Repairs a session: what comes out is judged before the first file is replaced. */

export interface Fixed {
  /** The id of the backup, for `undo`. */
  readonly backup: string;
  readonly plan: Plan;
  /** What is left, after the fix. It names the session where it is now. */
  readonly diagnosis: Diagnosis;
}

export interface FixOptions {
  /** Where backups are kept; never in a folder of the agent. */
  readonly backups: string;
  /** Where the files of sessions are kept; null: not known. */
  readonly keptFolderOf?: Door["keptFolderOf"];
}

/** What would repair the session; null if nothing would, or nothing needs to. */
export async function planFix(agent: Agent, session: SessionPlace, door: Door): Promise<Plan | null> {
  return planFor(await judgeSession(agent, session, door.run.keptFolderOf), agent, session, door);
}

async function planFor(before: Diagnosis, agent: Agent, session: SessionPlace, door: Door): Promise<Plan | null> {
  const kinds = new Set(before.problems.map(({ kind }) => kind));
  // What was never seen is not touched, and what cannot be read is not guessed at.
  if (kinds.size === 0 || kinds.has("unknown-version") || kinds.has("unopenable")) return null;
  const modes = restorePermissions(before.problems, door);
  if (modes.length > 0) return { changes: modes, lost: [] };
  return (await planFromKept(agent, session, door)) ?? (await agent.plan?.(session, door)) ?? null;
}

/** Through a door of its own: what was read before may be another file now. */
async function judgeSession(
  agent: Agent,
  session: SessionPlace,
  keptFolderOf: Door["keptFolderOf"],
): Promise<Diagnosis> {
  using door = new Door();
  door.keptFolderOf = keptFolderOf;
  return await diagnose(agent, session, door);
}

/**
 * Repairs the session. Throws `Refused`, with nothing changed, if a process has it open, if it was written to since it
 * was read, if the result would be no better, or if the disk does not take it.
 */
export async function fix(agent: Agent, session: SessionPlace, options: FixOptions): Promise<Fixed | null> {
  using door = new Door();
  const { keptFolderOf = null } = options;
  door.keptFolderOf = keptFolderOf;
  const stamps = stampsOf([session.path, ...session.parts]);
  const before = await judgeSession(agent, session, keptFolderOf);
  const plan = await planFor(before, agent, session, door);
  if (plan === null) return null;
  const paths = [session.path, ...session.parts, ...plan.changes.map(({ path }) => path)];
  const assertUnused = (): void => {
    const user = userOf(paths, session.id);
    if (user !== null) throw new Refused(session.path, `${user}; end the agent first`);
  };
  assertUnused();
  const executor = new Executor(plan, stamps, door);
  try {
    executor.draft();
    const drafted = {
      ...session,
      path: executor.drafted(session.path),
      parts: session.parts.map(executor.drafted, executor),
    };
    // Of an index alone, or of a place, the result can only be seen when it is there.
    const isOfSession = drafted.path !== session.path || drafted.parts.some((path, n) => path !== session.parts[n]);
    if (isOfSession) assertBetter(before, await diagnose(agent, drafted), session);
    // A long session takes a while: its agent may have been started meanwhile.
    assertUnused();
    const backup = executor.publish(options.backups, { agent: agent.name, session: session.id });
    // Beside its own name, other files of the agent count too, such as an index.
    const placed = {
      ...session,
      path: executor.placed(session.path),
      parts: session.parts.map(executor.placed, executor),
    };
    try {
      const diagnosis = await judgeSession(agent, placed, keptFolderOf);
      assertBetter(before, diagnosis, session);
      return { backup: backup.id, plan, diagnosis };
    } catch (error) {
      cancel(options.backups, backup);
      throw error;
    }
  } catch (error) {
    throw refusalOf(error, session.path);
  } finally {
    executor.discard();
  }
}

function stampsOf(paths: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    paths.flatMap((path) => {
      const stamp = stampOf(path);
      return stamp === null ? [] : [[path, stamp] as const];
    }),
  );
}

/** No kind of problem more, and no readable record less. */
function assertBetter(before: Diagnosis, after: Diagnosis, { path }: SessionPlace): void {
  const isSealed = ({ problems }: Diagnosis): boolean => problems.some(({ kind }) => kind === "wrong-permissions");
  // Nobody could say before what else was wrong.
  if (isSealed(before) && !isSealed(after)) return;
  const kinds = (diagnosis: Diagnosis): ReadonlySet<ProblemKind> => new Set(diagnosis.problems.map(({ kind }) => kind));
  const added = [...kinds(after)].filter((kind) => !kinds(before).has(kind));
  const isBetter = after.problems.length < before.problems.length && added.length === 0;
  if (!isBetter)
    throw new Refused(path, `the result would still be damaged (${[...kinds(after)].join(", ")}); nothing was changed`);
}

/** What the disk says, in words: it stops this session alone. */
function refusalOf(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error instanceof Refused || !("syscall" in error)) return error;
  const why = DISK_WORDS[String((error as NodeJS.ErrnoException).code)] ?? error.message;
  return new Refused(path, `${why}; nothing was changed`, error);
}

const DISK_WORDS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EXDEV: "it would have to move to another file system",
  EIO: "the disk reports an error",
  EEXIST: "there is a file in this place already",
};
