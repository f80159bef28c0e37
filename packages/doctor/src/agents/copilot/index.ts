import { basename, dirname, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import type { SessionRecord } from "../../contract/record.ts";
import type { Door } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { CONVERSATION_REPAIRS, LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { format, isOfCopilot } from "./format.ts";
import { plan } from "./plan.ts";
import { storeProblems, workspaceProblems } from "./surroundings.ts";
import { write } from "./write.ts";

/** GitHub Copilot CLI: `<home>/session-state/<session>/events.jsonl`; older versions wrote `<session>.jsonl`. */
export const copilot: Agent = {
  name: "copilot",
  title: "GitHub Copilot CLI",
  programs: ["copilot"],
  versions: ["1.0.102"],
  resume: ({ id }) => ["copilot", `--resume=${id}`],
  // Its chain runs through all conversations of a session, so it is followed here.
  rules: { chain: "order", closesOpenCalls: true, repeatsIds: false, sequence: "none" },

  plan,

  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    ...CONVERSATION_REPAIRS,
    "doubled-id",
    "empty-file",
    "index-missing",
  ]),

  homes: ({ COPILOT_HOME }, home) => [join(COPILOT_HOME || join(home, ".copilot"), "session-state")],

  detect({ values }) {
    return values.length === 0 ? 0 : values.filter(isOfCopilot).length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root);
    else if (door.facts(join(root, "events.jsonl"))) yield placeOf(join(root, "events.jsonl"));
    else
      for (const { path, name, kind } of door.list(root)) {
        if (kind === "file" && name.endsWith(".jsonl")) yield placeOf(path);
        if (kind === "folder" && door.facts(join(path, "events.jsonl"))) yield placeOf(join(path, "events.jsonl"));
      }
  },

  async read(session, door) {
    const file = await openLines(session.path, door);
    return (function* (): Generator<ReadItem> {
      const chain = new Chain();
      for (const item of readLines(file, format)) {
        yield item;
        if (item.type === "record") yield* chain.add(item.record);
      }
      for (const found of surroundingProblems(session, chain.hasPrompt, door))
        yield { type: "problem", problem: found };
    })();
  },

  write: (transfer, environment, home) => write(transfer, copilot.homes(environment, home)[0]!),
};

function* surroundingProblems({ path, id }: SessionPlace, hasPrompt: boolean, door: Door) {
  if (basename(path) !== "events.jsonl") return;
  yield* workspaceProblems(join(dirname(path), "workspace.yaml"), id, door);
  const state = dirname(dirname(path));
  if (basename(state) === "session-state") yield* storeProblems(dirname(state), id, hasPrompt, door);
}

function placeOf(path: string): SessionPlace {
  const id = basename(path) === "events.jsonl" ? basename(dirname(path)) : basename(path, ".jsonl");
  return { agent: "copilot", id, path, parts: [] };
}

const IDS_MAX = 200_000;

/** Each event names one that stands before it. */
class Chain {
  readonly #ids = new Set<string>();
  #isFirst = true;
  hasPrompt = false;

  *add({ id, kind, parent, place, units }: SessionRecord): Generator<ReadItem> {
    // Events of the model may follow one that Copilot does not write.
    const isKnown = parent === null || kind.startsWith("model.") || this.#ids.has(parent) || this.#ids.size >= IDS_MAX;
    // What the first one follows is not there: that is the header, and said of it.
    if (!isKnown && !this.#isFirst) yield { type: "problem", problem: problem("lost-record", place) };
    if (parent !== null && this.#ids.size < IDS_MAX) this.#ids.add(parent);
    if (id !== null && this.#ids.size < IDS_MAX) this.#ids.add(id);
    this.#isFirst = false;
    this.hasPrompt ||= units.some(({ type }) => type === "user");
  }
}
