import { basename, dirname, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import { fieldsOf } from "../../contract/shapes.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { CONVERSATION_REPAIRS, LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { folderFor, format, isOfPi, VERSION_MAX } from "./format.ts";
import { plan } from "./plan.ts";
import { write } from "./write.ts";

/** pi: `<home>/sessions/<folder of the project>/<time>_<session>.jsonl`. */
export const pi: Agent = {
  name: "pi",
  title: "pi",
  programs: ["pi"],
  versions: ["0.73.1"],
  // Calls that were interrupted stay open; pi makes up their results for each request.
  resume: ({ path }) => ["pi", "--session", path],
  rules: { chain: "parents", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "none" },

  plan,

  repairs: new Set<ProblemKind>([...LINE_REPAIRS, ...CONVERSATION_REPAIRS, "doubled-id"]),

  homes: ({ PI_CODING_AGENT_DIR, PI_CODING_AGENT_SESSION_DIR }, home) => [
    ...(PI_CODING_AGENT_SESSION_DIR ? [PI_CODING_AGENT_SESSION_DIR] : []),
    join(PI_CODING_AGENT_DIR || join(home, ".pi", "agent"), "sessions"),
  ],

  detect({ values }) {
    return values.length === 0 ? 0 : values.filter(isOfPi).length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root);
    for (const { path, name, kind } of door.list(root)) {
      if (kind === "file" && name.endsWith(".jsonl")) yield placeOf(path);
      if (kind !== "folder") continue;
      for (const inner of door.list(path))
        if (inner.kind === "file" && inner.name.endsWith(".jsonl")) yield placeOf(inner.path);
    }
  },

  async read(session, door) {
    const file = await openLines(session.path, door);
    return (function* (): Generator<ReadItem> {
      let isFirst = true;
      for (const item of readLines(file, format)) {
        yield item;
        if (item.type !== "record" || !isFirst) continue;
        isFirst = false;
        if (!format.isHeader!(item.record.value)) continue;
        const { version, cwd } = fieldsOf(item.record.value);
        const { place } = item.record;
        if (version !== undefined && !(Number(version) <= VERSION_MAX))
          yield { type: "problem", problem: problem("unknown-version", place, { detail: String(version) }) };
        if (typeof cwd === "string" && isElsewhere(session.path, cwd))
          yield { type: "problem", problem: problem("wrong-folder", place, { detail: folderFor(cwd) }) };
      }
    })();
  },

  write: (transfer, environment, home) =>
    write(transfer, pi.homes(environment, home).at(-1)!, environment["PI_CODING_AGENT_SESSION_DIR"] || null),
};

function placeOf(path: string): SessionPlace {
  const name = basename(path, ".jsonl");
  return { agent: "pi", id: /_([^_]+)$/.exec(name)?.[1] ?? name, path, parts: [] };
}

/** Whether it lies in the folder of a project, but not its own: pi then does not list it. */
function isElsewhere(path: string, cwd: string): boolean {
  const folder = dirname(path);
  const isOfProject = /^--.*--$/.test(basename(folder)) && basename(dirname(folder)) === "sessions";
  return isOfProject && basename(folder) !== folderFor(cwd);
}
