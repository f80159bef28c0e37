import { randomBytes } from "node:crypto";
import type { Agent, SessionPlace } from "../contract/agent.ts";
import type { Change, Plan } from "../contract/plan.ts";
import type { ProblemKind } from "../contract/problem.ts";
import { type Diagnosis, diagnose } from "../diagnosis/diagnose.ts";
import { Door, Refused } from "../files/door.ts";
import { backUp, finishBackup, hashOf, modeOf, undo } from "./backups.ts";
import { processWithOpen } from "./open-files.ts";
import { type Draft, discard, draftCopy, draftEdits, publish } from "./write.ts";

/** Applies a plan: everything is written beside the files and checked before the first one is replaced. */

export interface Fixed {
  /** The id of the backup, for `undo`. */
  readonly backup: string;
  readonly plan: Plan;
  /** What is left, after the fix. */
  readonly diagnosis: Diagnosis;
}

export interface FixOptions {
  /** Where backups are kept; never in a folder of the agent. */
  readonly backups: string;
}

/** What would repair the session; null if nothing would, or nothing needs to. */
export async function planFix(agent: Agent, session: SessionPlace, door: Door): Promise<Plan | null> {
  return planFor(await diagnose(agent, session), agent, session, door);
}

async function planFor(before: Diagnosis, agent: Agent, session: SessionPlace, door: Door): Promise<Plan | null> {
  const kinds = new Set(before.problems.map(({ kind }) => kind));
  // What was never seen is not touched, and what cannot be read is not guessed at.
  if (kinds.size === 0 || kinds.has("unknown-version") || kinds.has("unopenable")) return null;
  return (await agent.plan?.(session, door)) ?? null;
}

/**
 * Repairs the session. Throws `Refused`, with nothing changed, if a process has it open, if it was written to since it
 * was read, or if the result would be no better.
 */
export async function fix(agent: Agent, session: SessionPlace, options: FixOptions): Promise<Fixed | null> {
  using door = new Door();
  const before = await diagnose(agent, session);
  const plan = await planFor(before, agent, session, door);
  if (plan === null) return null;
  const paths = [session.path, ...session.parts, ...plan.changes.map(({ path }) => path)];
  const holder = processWithOpen(paths);
  if (holder !== null) throw new Refused(session.path, `process ${holder} has it open; end the agent first`);
  for (const change of plan.changes) assertUnchanged(change, door);

  const drafts: Draft[] = [];
  try {
    for (const change of plan.changes) drafts.push(draftOf(change));
    const drafted = (path: string): string => drafts.find((draft) => draft.path === path)?.temporary ?? path;
    const repaired = { ...session, path: drafted(session.path), parts: session.parts.map(drafted) };
    // Of an index alone, the result can only be seen when it is in its place.
    const isOfSession = drafts.some(({ path }) => path === session.path || session.parts.includes(path));
    if (isOfSession) assertBetter(before, await diagnose(agent, repaired), session);

    const changed = drafts.map(({ path }) => path);
    const at = new Date().toISOString();
    const id = `${at.replaceAll(/[^0-9]/g, "").slice(0, 14)}-${randomBytes(4).toString("hex")}`;
    const place = backUp(options.backups, id, changed);
    const files = drafts.map(({ path, temporary }, index) => ({
      ...{ path, name: String(index), mode: modeOf(path), sha256: hashOf(temporary) },
    }));
    const backup = { id, agent: agent.name, session: session.id, at, files };
    finishBackup(place, backup);
    for (const change of plan.changes) assertUnchanged(change, door);
    for (const draft of drafts) publish(draft);
    // Beside its own name, other files of the agent count too, such as an index.
    const diagnosis = await diagnose(agent, session);
    try {
      assertBetter(before, diagnosis, session);
    } catch (error) {
      undo(options.backups, backup);
      throw error;
    }
    return { backup: id, plan, diagnosis };
  } finally {
    for (const draft of drafts) discard(draft);
  }
}

function draftOf(change: Change): Draft {
  if (change.type === "edit") return draftEdits(change.path, change.size, change.edits);
  if (change.type === "replace") return draftCopy(change.path, change.from);
  throw new Error(`a change of type ${change.type} cannot be applied yet`);
}

function assertUnchanged(change: Change, door: Door): void {
  if (change.type !== "edit" && change.type !== "replace") return;
  const size = door.facts(change.path)?.size;
  if (size !== change.size) throw new Refused(change.path, "the agent wrote to it meanwhile; run the command again");
}

/** No kind of problem more, and no readable record less. */
function assertBetter(before: Diagnosis, after: Diagnosis, { path }: SessionPlace): void {
  const kinds = (diagnosis: Diagnosis): ReadonlySet<ProblemKind> => new Set(diagnosis.problems.map(({ kind }) => kind));
  const added = [...kinds(after)].filter((kind) => !kinds(before).has(kind));
  const isBetter = after.problems.length < before.problems.length && added.length === 0;
  if (!isBetter)
    throw new Refused(path, `the result would still be damaged (${[...kinds(after)].join(", ")}); nothing was changed`);
}
