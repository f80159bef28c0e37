import { basename, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import type { Problem, ProblemKind } from "../../contract/problem.ts";
import { fieldsOf } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { CONVERSATION_REPAIRS, LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { format, TYPES } from "./format.ts";
import { ProjectionCursor, RolloutNumbers } from "./history.ts";
import { projectionOf, threadIn, threadProblems } from "./indexes.ts";
import { plan } from "./plan.ts";
import { write } from "./write.ts";

/**
 * Codex: `<home>/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl`, `.jsonl.zst` when it has not been used
 * for long, in `archived_sessions` when it was archived.
 */
export const codex: Agent = {
  name: "codex",
  title: "Codex",
  programs: ["codex"],
  versions: ["0.169.0"],
  resume: ({ id }) => ["codex", "resume", id],
  // What an interrupted turn left open stays open; Codex tells the model that it was aborted.
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "rising" },

  plan,

  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    ...CONVERSATION_REPAIRS,
    "overlapping-sequence",
    "shrunk-file",
    "index-wedged",
    "index-missing",
    "index-stale",
    "truncated-compression",
    "empty-file",
  ]),

  homes: ({ CODEX_HOME }, home) =>
    ["sessions", "archived_sessions"].map((name) => join(CODEX_HOME || join(home, ".codex"), name)),

  detect({ values }) {
    const records = values.filter((value) => format.isRecord(value) && TYPES.has(String(fieldsOf(value)["type"])));
    return values.length === 0 ? 0 : records.length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root);
    else yield* findIn(root, door, 3);
  },

  async read(session, door) {
    const file = await openLines(session.path, door);
    return (function* (): Generator<ReadItem> {
      const thread = threadIn(session.path);
      const projection = thread === null ? null : yield* asItems(projectionOf(session.path, thread, door));
      const cursor = projection === null || !("chunks" in file) ? null : new ProjectionCursor(projection, file);
      const numbers = new RolloutNumbers();
      for (const item of readLines(file, format)) {
        if (item.type === "problem") {
          yield item;
          continue;
        }
        numbers.add(item.record);
        cursor?.add(item.record);
        // The number of half a record was given to the one that was written in its place.
        yield item.record.state === "partial"
          ? { ...item, record: { ...item.record, sequence: null, id: null } }
          : item;
      }
      yield* numbers.end();
      if (cursor) yield* cursor.end();
      if (thread !== null) yield* asItems(threadProblems(session.path, thread, door));
    })();
  },

  write: (transfer, environment, home) => write(transfer, codex.homes(environment, home)[0]!),
};

/** `depth`: how many folders of dates are below this one. */
function* findIn(folder: string, door: Door, depth: number): Generator<SessionPlace> {
  const entries = [...door.list(folder)];
  const names = new Set(entries.map(({ name }) => name));
  for (const { path, name, kind } of entries) {
    if (kind === "folder" && depth > 0) yield* findIn(path, door, depth - 1);
    // While it is packed or unpacked, there are two; the plain one counts.
    const isCopy = name.endsWith(".zst") && names.has(name.slice(0, -".zst".length));
    if (kind === "file" && /^rollout-.*\.jsonl(?:\.zst)?$/.test(name) && !isCopy) yield placeOf(path);
  }
}

function placeOf(path: string): SessionPlace {
  const id = /^rollout-.{19}-(.*?)\.jsonl(?:\.zst)?$/.exec(basename(path))?.[1] ?? basename(path);
  return { agent: "codex", id, path, parts: [] };
}

function* asItems<T>(problems: Generator<Problem, T>): Generator<ReadItem, T> {
  for (let next = problems.next(); ; next = problems.next()) {
    if (next.done) return next.value;
    yield { type: "problem", problem: next.value };
  }
}
