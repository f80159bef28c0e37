import { basename, dirname, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import type { Place, SessionRecord } from "../../contract/record.ts";
import { fieldsOf, textIn } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { format, isPlaceholder } from "./format.ts";
import { WorkingFolders } from "./place.ts";
import { plan } from "./plan.ts";
import { write } from "./write.ts";

/** Claude Code: `<home>/projects/<folder of the project>/<session>.jsonl`, its sub-agents in a folder beside it. */
export const claudeCode: Agent = {
  name: "claude-code",
  title: "Claude Code",
  programs: ["claude"],
  versions: ["2.1.197", "2.1.328"],
  resume: ({ id }) => ["claude", "--resume", id],
  rules: { chain: "parents", closesOpenCalls: true, repeatsIds: false, sequence: "none" },

  plan,

  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    "lost-record",
    "call-without-result",
    "result-without-call",
    "result-before-call",
    "bad-tool-input",
    "poisoned-result",
    "empty-file",
    "stub",
    "doubled-id",
    "synthetic-tail",
    "wrong-folder",
  ]),

  homes: ({ CLAUDE_CONFIG_DIR }, home) =>
    CLAUDE_CONFIG_DIR
      ? [join(CLAUDE_CONFIG_DIR, "projects")]
      : [join(home, ".claude", "projects"), join(home, ".config", "claude", "projects")],

  detect({ values }) {
    if (values.length === 0) return 0;
    const records = values.filter((value) => format.isRecord(value) && "sessionId" in fieldsOf(value));
    return records.length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root, door);
    else yield* findIn(root, door, 1);
  },

  async read(session, door) {
    const files = [];
    for (const path of [session.path, ...session.parts])
      files.push({ file: await openLines(path, door), thread: path === session.path ? "main" : threadOf(path) });
    return (function* (): Generator<ReadItem> {
      for (const { file, thread } of files)
        yield* thread === "main" ? mainItems(session, readLines(file, format), door) : readLines(file, format, thread);
    })();
  },

  write: (transfer, environment, home) => write(transfer, claudeCode.homes(environment, home)[0]!),
};

/** `depth`: how many folders of projects are below this one. */
function* findIn(folder: string, door: Door, depth: number): Generator<SessionPlace> {
  for (const { path, name, kind } of door.list(folder)) {
    if (kind === "folder" && depth > 0) yield* findIn(path, door, depth - 1);
    // Older versions kept sub-agents beside the sessions; they are parts of those.
    if (kind === "file" && name.endsWith(".jsonl") && !name.startsWith("agent-")) yield placeOf(path, door);
  }
}

function placeOf(path: string, door: Door): SessionPlace {
  const id = basename(path, ".jsonl");
  const subagents = join(dirname(path), id, "subagents");
  const parts = [...door.list(subagents)].filter(({ name, kind }) => kind === "file" && /^agent-.*\.jsonl$/.test(name));
  return { agent: "claude-code", id, path, parts: parts.map((part) => part.path) };
}

/** What no rule can say of the conversation itself: its end, its place, and whether there is one. */
function* mainItems(session: SessionPlace, items: Iterable<ReadItem>, door: Door): Generator<ReadItem> {
  const folders = new WorkingFolders(session);
  const start: Place = { file: session.path, line: null, offset: null };
  let last: SessionRecord | null = null;
  let prompt: Place | null = null;
  let isStub = true;
  for (const item of items) {
    yield item;
    if (item.type !== "record") continue;
    const { record } = item;
    // A line that cannot be read may have been the conversation.
    isStub &&= record.id === null && record.state === "intact";
    if (record.kind === "last-prompt" && textIn(fieldsOf(record.value)["leafUuid"]) !== null) prompt ??= record.place;
    if (record.id !== null) folders.add(fieldsOf(record.value)["cwd"]);
    if (record.thread === "main" && record.units.some(({ type }) => type !== "title")) last = record;
  }
  if (isStub && prompt !== null) yield { type: "problem", problem: problem("stub", prompt) };
  if (last !== null && isPlaceholder(last.value))
    yield { type: "problem", problem: problem("synthetic-tail", last.place) };
  const right = folders.right(door);
  if (right !== null) yield { type: "problem", problem: problem("wrong-folder", start, { detail: basename(right) }) };
}

const threadOf = (path: string): string => basename(path, ".jsonl").replace(/^agent-/, "");
