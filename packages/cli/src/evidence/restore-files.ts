import { join } from "node:path";
import {
  type FileRules,
  GitFailure,
  KeptFiles,
  noteRefFrom,
  planRestore,
  type RestorePlan,
  restoreFiles,
} from "@holdfast/acp/internal/evidence";
import type { OpenCall, Session, Store } from "holdfast";
import { CommandError, EXIT } from "../exit.ts";
import { shortId } from "../short-id.ts";
import { APP } from "../store/app.ts";
import { isRunning, membersOf } from "../tools/shell/process-groups.ts";
import { Trust } from "../trust/trust.ts";
import { typedCommand } from "../typed-command.ts";
import { isInDoubt, placeOf } from "./changes-elsewhere.ts";
import { NOTES, RESTORED } from "./folder-notes.ts";

/** What can be put back for the first call of a session whose outcome is unknown. */
export interface FilesToRestore {
  readonly call: OpenCall;
  readonly plan: RestorePlan;
  /** Puts them back, and records that. */
  readonly restore: () => Promise<{ readonly restored: readonly string[]; readonly changed: readonly string[] }>;
}

/**
 * Opens the session, so that no agent works in it meanwhile, and hands on what can be put back; null if nothing was
 * noted. Throws CommandError PROCESS_RUNNING while a command of the dead agent runs, and SESSION_BUSY.
 */
export async function withFilesToRestore<T>(
  store: Store,
  id: string,
  work: (files: FilesToRestore | null) => Promise<T>,
): Promise<T> {
  const { attributes, calls } = await store.read(id);
  const trust = new Trust(store.url);
  const place = placeOf(store.url, id, attributes.notes, trust);
  const noted = calls.filter(isInDoubt);
  const call = noted.toSorted((a, b) => ((a.startedAt ?? "") < (b.startedAt ?? "") ? -1 : 1))[0];
  const ref = noteRefFrom(call?.before);
  if (place === null || call === undefined || ref === null) return work(null);
  await using session = await store.resume(id, { app: APP });
  await assertEnded(session, calls, trust);
  const kept = new KeptFiles(join(place.outputs, NOTES));
  const plan = await planOf(() => planRestore(ref, kept, place));
  if (plan === null) return await work(null);
  return await work({
    call,
    plan,
    restore: () => restoreNow(session, calls, trust, { call, plan, rules: place.rules }),
  });
}

async function planOf(make: () => Promise<RestorePlan | null>): Promise<RestorePlan | null> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error;
    const message = `The folder could not be compared: ${error.message}. Nothing was changed.`;
    throw new CommandError(EXIT.failed, "NOT_COMPARED", message, error);
  }
}

async function restoreNow(
  session: Session<unknown>,
  calls: readonly OpenCall[],
  trust: Trust,
  { call, plan, rules }: { readonly call: OpenCall; readonly plan: RestorePlan; readonly rules: FileRules },
): ReturnType<FilesToRestore["restore"]> {
  // The person may have thought for long.
  await assertEnded(session, calls, trust);
  // Recorded first: the model must not take for the call's work, or for none, what was put back.
  const record = (files: readonly string[]): Promise<unknown> =>
    session.note(RESTORED, { call: call.id, files: [...files] });
  await record(plan.files.map(({ path }) => path));
  const done = restoreFiles(plan, { rules });
  if (done.changed.length > 0) await record(done.restored);
  return done;
}

/** A command that runs on would change the files again. */
async function assertEnded(session: Session<unknown>, calls: readonly OpenCall[], trust: Trust): Promise<void> {
  for (const { process } of calls) {
    if (!process || !trust.of(session.id).hasStarted(process)) continue;
    const isLeft = process.group === true && (await membersOf(process.pid)).length > 0;
    if (!isLeft && !(await isRunning(process))) continue;
    const end = typedCommand(`run --resume ${shortId(session.id)} --finish --stop-processes`);
    const message = `Process ${process.pid}, which the dead agent started, still runs and may change files. Nothing was changed. End it first (${end} ends it and finishes the turn), or wait for it.`;
    throw new CommandError(EXIT.busy, "PROCESS_RUNNING", message);
  }
}
