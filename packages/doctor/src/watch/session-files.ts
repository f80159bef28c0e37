import { createHash } from "node:crypto";
import type { FoundSession } from "../diagnosis/sessions.ts";
import { type Door, Refused } from "../files/door.ts";

/** How a session is now: two of the same text are the same content. */
export interface SessionFacts {
  readonly text: string;
  /** Of all its files, in bytes. */
  readonly size: number;
}

/** Null if it is gone. A part that cannot be looked at counts as one that is not there. */
export async function factsOf({ agent, session }: FoundSession, run: Door): Promise<SessionFacts | null> {
  if (session.isShared) return await rowFacts({ agent, session }, run);
  const main = run.facts(session.path);
  if (main === null) return null;
  const parts = session.parts.map((path) => [path, quietFacts(path, run)] as const);
  const all = [["", main] as const, ...parts];
  return {
    text: JSON.stringify(all.map(([path, facts]) => [path, facts?.size, facts?.modifiedMs])),
    size: all.reduce((sum, [, facts]) => sum + (facts?.size ?? 0), 0),
  };
}

/** Of a session in a database that it shares: its rows say whether it is another. */
async function rowFacts({ agent, session }: FoundSession, run: Door): Promise<SessionFacts | null> {
  if (run.facts(session.path) === null) return null;
  using door = run.inner();
  const hash = createHash("sha256");
  let size = 0;
  for (const item of await agent.read(session, door)) {
    if (item.type !== "record") continue;
    hash.update(item.record.bytes).update("\n");
    size += item.record.length;
  }
  return { text: hash.digest("hex"), size };
}

/** Of its files, in bytes, without a look inside. */
export const sizeOf = ({ session }: FoundSession, door: Door): number =>
  [session.path, ...session.parts].reduce((sum, path) => sum + (quietFacts(path, door)?.size ?? 0), 0);

/** What the system says of its files, without a look inside. */
export function statOf({ session }: FoundSession, door: Door): string {
  const log = session.isShared ? [`${session.path}-wal`] : [];
  const all = [session.path, ...log, ...session.parts].map((path) => quietFacts(path, door));
  return JSON.stringify(all.map((facts) => facts && [facts.size, facts.modifiedMs]));
}

function quietFacts(path: string, door: Door) {
  try {
    return door.facts(path);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}
