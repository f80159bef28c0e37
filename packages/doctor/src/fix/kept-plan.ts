import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Agent, SessionPlace } from "../contract/agent.ts";
import type { Change, Plan } from "../contract/plan.ts";
import type { SessionRecord } from "../contract/record.ts";
import { diagnose } from "../diagnosis/diagnose.ts";
import { Door } from "../files/door.ts";
import { keptCopyOf } from "../keep/kept-copy.ts";
import { keptContents, lostSinceKept } from "../keep/lost-content.ts";
import { sourceOf } from "../keep/names.ts";

const WHY = "brings back what holdfast watch kept";
/** Of a file that is gone, the new one is made in memory. */
const CREATED_BYTES_MAX = 2 ** 29;

/** Brings a session back from what was kept of it; null if that has not all that is readable now. */
export async function planFromKept(agent: Agent, session: SessionPlace, door: Door): Promise<Plan | null> {
  if (session.isShared) return null;
  const lost = lostSinceKept(session, door);
  if (lost?.kind === "deleted-file") return planDeleted(session, lost.from, door);
  for (const from of lost ? [lost.from] : keptContents(session, door)) {
    const kept = { ...session, path: from };
    const { problems, units } = await diagnose(agent, kept);
    if (problems.length > 0 || Object.keys(units).length === 0 || !(await hasAll(agent, kept, session))) continue;
    const size = door.facts(session.path)!.size;
    return {
      changes: [{ type: "replace", path: session.path, size, from, grade: "brought back", why: WHY }],
      lost: [],
    };
  }
  return null;
}

function planDeleted(session: SessionPlace, from: string, door: Door): Plan | null {
  const kept = keptCopyOf(session, door)?.session;
  const folder = dirname(kept?.path ?? from);
  const files = [
    { path: session.path, from },
    ...(kept?.parts ?? []).map((part) => ({ path: sourceOf(folder, session, part), from: part })),
  ].filter(
    ({ path, from: source }) => door.kindOf(path) === null && (door.facts(source)?.size ?? 0) <= CREATED_BYTES_MAX,
  );
  if (files[0]?.path !== session.path) return null;
  const changes = files.map(
    ({ path, from: source }): Change => ({
      ...{ type: "create", path, bytes: readFileSync(source), mode: 0o600, grade: "brought back", why: WHY },
    }),
  );
  return { changes, lost: [] };
}

/**
 * Whether every record that can be read now is in the kept content too. One that has to be repaired says something else
 * there: it counts by its id, or by a place behind the record before it.
 */
async function hasAll(agent: Agent, kept: SessionPlace, session: SessionPlace): Promise<boolean> {
  const places = new Map<string, number>();
  const ids = new Set<string>();
  let count = 0;
  for await (const { bytes, id } of recordsOf(agent, kept)) {
    places.set(hashOf(bytes), count++);
    if (id !== null) ids.add(id);
  }
  let next = 0;
  for await (const { bytes, id, state } of recordsOf(agent, session)) {
    const at = state === "intact" ? places.get(hashOf(bytes)) : next;
    if (at === undefined || at >= count) return false;
    if (state === "recovered" && id !== null && !ids.has(id)) return false;
    next = at + 1;
  }
  return true;
}

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64");

async function* recordsOf(agent: Agent, session: SessionPlace): AsyncGenerator<SessionRecord> {
  using door = new Door();
  for (const item of await agent.read(session, door))
    if (item.type === "record" && item.record.state !== "unreadable" && item.record.place.file === session.path)
      yield item.record;
}
