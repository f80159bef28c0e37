import type { SessionPlace } from "../contract/agent.ts";
import { type Door, Refused } from "../files/door.ts";
import { keptCopyOf } from "./kept-copy.ts";

/** What an agent's file lacks of what was kept of it. */
export interface LostContent {
  readonly kind: "deleted-file" | "shrunk-file";
  /** The kept content that has all of it. */
  readonly from: string;
  /** In bytes. */
  readonly had: number;
  readonly has: number;
}

/**
 * Null if nothing is lost, or if nothing was kept. A file that is the beginning of what was kept was cut off; of one
 * that says something else by now, nobody knows whether that was meant.
 */
export function lostSinceKept(session: SessionPlace, run: Door): LostContent | null {
  if (session.isShared) return null;
  using door = run.inner();
  const now = door.facts(session.path);
  for (const from of keptContents(session, door)) {
    const had = door.facts(from)?.size ?? 0;
    if (had === 0) continue;
    if (now === null) return { kind: "deleted-file", from, had, has: 0 };
    if (now.size < had && isBeginning(session.path, now.size, from, door))
      return { kind: "shrunk-file", from, had, has: now.size };
  }
  return null;
}

/** The contents that were kept of a session's file, the latest first. */
export function keptContents(session: SessionPlace, door: Door): readonly string[] {
  const kept = keptCopyOf(session, door);
  return kept === null ? [] : [...(kept.session ? [kept.session.path] : []), ...kept.epochs];
}

function isBeginning(path: string, size: number, of: string, door: Door): boolean {
  try {
    const whole = door.openRaw(of);
    let offset = 0;
    for (const chunk of door.openRaw(path).chunks(0, size)) {
      if (Buffer.compare(chunk, whole.read(offset, chunk.length)) !== 0) return false;
      offset += chunk.length;
    }
    return offset === size;
  } catch (error) {
    // What cannot be opened says nothing; the reader reports it.
    if (error instanceof Refused) return false;
    throw error;
  }
}
