import { type Door, type FoundSession, Refused } from "@holdfast/doctor";
import { credentials } from "holdfast";

/** How many texts of a session look like a credential, by kind. What they are is neither kept nor shown. */
export async function countSecrets({ agent, session }: FoundSession, run: Door): Promise<ReadonlyMap<string, number>> {
  using door = run.inner();
  const counts = new Map<string, number>();
  try {
    for (const item of await agent.read(session, door)) {
      if (item.type !== "record") continue;
      const { buffer, byteOffset, byteLength } = item.record.bytes;
      const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
      const hidden = credentials(text);
      if (hidden === text) continue;
      // What was hidden before is no secret any more.
      for (const [kind, count] of marksIn(hidden)) {
        const more = count - (marksIn(text).get(kind) ?? 0);
        if (more > 0) counts.set(kind, (counts.get(kind) ?? 0) + more);
      }
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  return counts;
}

function marksIn(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, kind] of text.matchAll(/\[redacted:([\w-]+)\]/g)) counts.set(kind!, (counts.get(kind!) ?? 0) + 1);
  return counts;
}
