import { basename, join } from "node:path";
import type { Agent, SessionPlace } from "../../contract/agent.ts";
import type { ProblemKind } from "../../contract/problem.ts";
import { fieldsOf, textIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { scan } from "../../scan/scan.ts";
import { format } from "./format.ts";
import { plan } from "./plan.ts";

const HEAD_BYTES = 2 ** 16;

/** zot: `$ZOT_HOME/sessions/<folder>/<time>-<id>.jsonl`, exported ones `.zotsession`. */
export const zot: Agent = {
  name: "zot",
  title: "zot",
  programs: ["zot"],
  versions: [],
  // It makes up the results of open calls each time it loads a session.
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "none" },
  plan,
  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    ...(["header-missing", "header-damaged", "call-without-result", "result-without-call"] as const),
    ...(["result-before-call", "bad-tool-input", "poisoned-result"] as const),
  ]),

  homes({ ZOT_HOME, XDG_STATE_HOME, LOCALAPPDATA }, home) {
    if (ZOT_HOME) return [join(ZOT_HOME, "sessions")];
    const states = [XDG_STATE_HOME || join(home, ".local", "state"), join(home, "Library", "Application Support")];
    return [...states, ...(LOCALAPPDATA ? [LOCALAPPDATA] : [])].map((state) => join(state, "zot", "sessions"));
  },

  detect({ values }) {
    const records = values.filter((value) => format.isRecord(value));
    return values.length === 0 ? 0 : records.length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") {
      yield placeOf(root, door);
      return;
    }
    for (const { path, name, kind } of door.list(root)) {
      if (kind === "folder")
        for (const inner of door.list(path)) if (isSession(inner.name, inner.kind)) yield placeOf(inner.path, door);
      if (isSession(name, kind)) yield placeOf(path, door);
    }
  },

  read: async (session, door) => readLines(await openLines(session.path, door), format),
};

const isSession = (name: string, kind: string): boolean => kind === "file" && /\.(?:jsonl|zotsession)$/.test(name);

function placeOf(path: string, door: Door): SessionPlace {
  const place = { agent: "zot", id: basename(path).replace(/\.\w+$/, ""), path, parts: [] };
  try {
    using file = door.openRaw(path);
    for (const { value } of scan([file.read(0, HEAD_BYTES)], format)) {
      if (!format.isHeader!(value)) continue;
      const { id, cwd } = fieldsOf(fieldsOf(value)["meta"]);
      const folder = textIn(cwd);
      return { ...place, id: textIn(id) ?? place.id, ...(folder ? { folder } : {}) };
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  return place;
}
