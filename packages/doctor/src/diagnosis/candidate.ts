import type { Agent, Candidate } from "../contract/agent.ts";
import { DatabaseCopy } from "../files/database.ts";
import { type Door, Refused } from "../files/door.ts";
import { scan } from "../scan/scan.ts";

const HEAD_BYTES = 2 ** 16;
const NAMES_MAX = 1_000;
const SQLITE_MAGIC = "SQLite format 3\0";

/** What can be seen of a path before it is known whose it is; null if nothing can. */
export async function candidateAt(path: string, run: Door): Promise<Candidate | null> {
  using door = run.inner();
  const none = { path, head: new Uint8Array(0), values: [], tables: null, names: [] };
  try {
    const kind = door.kindOf(path);
    if (kind === "folder") {
      const names = [...door.list(path)].slice(0, NAMES_MAX).map(({ name }) => name);
      return { ...none, isFolder: true, names };
    }
    if (kind !== "file") return null;
    const file = await door.open(path);
    const head = file.read(0, HEAD_BYTES);
    const isDatabase = Buffer.from(head.subarray(0, SQLITE_MAGIC.length)).toString("latin1") === SQLITE_MAGIC;
    const tables = isDatabase ? DatabaseCopy.shared(path, door).tables() : null;
    return { ...none, isFolder: false, head, values: isDatabase ? [] : valuesIn(head), tables };
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

/** The objects in the first bytes of a file: its lines, or the one object that it is. */
function valuesIn(head: Uint8Array): readonly unknown[] {
  const values = [...scan([head], { isRecord: () => true })].flatMap(({ value }) =>
    value === undefined ? [] : [value],
  );
  return values.filter((value) => typeof value === "object" && value !== null);
}

/** The agent that is surest that this is its own. */
export function agentOf(candidate: Candidate, agents: readonly Agent[]): Agent | null {
  let best: { readonly agent: Agent; readonly score: number } | null = null;
  for (const agent of agents) {
    const score = agent.detect(candidate);
    if (score > (best?.score ?? 0)) best = { agent, score };
  }
  return best?.agent ?? null;
}
