import { basename, dirname, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import type { SessionRecord } from "../../contract/record.ts";
import { fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { CONVERSATION_REPAIRS, LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { format } from "./format.ts";
import { type Gap, LineOrder } from "./order.ts";
import { plan } from "./plan.ts";
import { isWholeObject, readWholeObject } from "./whole-object.ts";
import { write } from "./write.ts";

/**
 * Gemini CLI: `<home>/tmp/<project>/chats/session-<minute>-<id>.jsonl`, older ones `.json`; its sub-agents in a folder
 * beside it that is named after the session.
 */
export const gemini: Agent = {
  name: "gemini",
  title: "Gemini CLI",
  programs: ["gemini"],
  versions: ["0.61.0"],
  resume: ({ id }) => ["gemini", "--resume", id],
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: true, sequence: "none" },

  plan,

  repairs: new Set<ProblemKind>([...LINE_REPAIRS, ...CONVERSATION_REPAIRS]),

  homes: ({ GEMINI_CLI_HOME }, home) => [join(GEMINI_CLI_HOME || home, ".gemini", "tmp")],

  detect({ values }) {
    const records = values.filter((value) => format.isRecord(value));
    return values.length === 0 ? 0 : records.length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root, headOf(root, door), door);
    else if (basename(root) === "chats") yield* findIn(root, door);
    else
      for (const { path, name, kind } of door.list(root)) {
        if (kind !== "folder") continue;
        yield* findIn(name === "chats" ? path : join(path, "chats"), door);
      }
  },

  async read(session, door) {
    const files = [];
    for (const path of [session.path, ...session.parts]) files.push(await openLines(path, door));
    return (function* (): Generator<ReadItem> {
      for (const [index, file] of files.entries()) {
        const thread = index === 0 ? "main" : basename(session.parts[index - 1]!, ".jsonl");
        const isObject = "chunks" in file && isWholeObject(file);
        const doubles = new Doubles();
        const order = new LineOrder();
        let last: ReadItem | null = null;
        for (const item of isObject ? readWholeObject(file) : readLines(file, format, thread)) {
          yield item;
          if (item.type !== "record") continue;
          last = item;
          yield* doubles.add(item.record);
          if (!isObject) yield* gapBefore(item.record, order);
        }
        const gap = order.end();
        if (gap !== null && last?.type === "record") yield gapAt(gap, last.record);
      }
    })();
  },

  write: (transfer, environment, home, door) => write(transfer, gemini.homes(environment, home)[0]!, door),
};

function* gapBefore(record: SessionRecord, order: LineOrder): Generator<ReadItem> {
  if (record.value === undefined || record.state === "partial") order.skip();
  if (record.value === undefined || (record.state === "partial" && record.id === null)) return;
  const gap = order.next(record.kind, fieldsOf(record.value));
  if (gap !== null) yield gapAt(gap, record);
}

const gapAt = (gap: Gap, { place }: SessionRecord): ReadItem => ({
  type: "problem",
  problem: problem("lost-record", place, GAPS[gap]),
});

const GAPS: Readonly<Record<Gap, { readonly means: string; readonly fix: string }>> = {
  message: {
    means: "A message before this record is missing.",
    fix: "Restores it where it is readable elsewhere; otherwise puts a note in its place.",
  },
  snapshot: {
    means: "A resume emptied the session here and did not put its messages back. Gemini CLI shows none of them.",
    fix: "Puts them back.",
  },
};

/** A session that is resumed in another minute leaves a second file, without a message in it. */
function* findIn(folder: string, door: Door): Generator<SessionPlace> {
  const files = [...door.list(folder)].filter(({ name, kind }) => kind === "file" && /^session-.*\.jsonl?$/.test(name));
  const heads = files.map(({ path, name }) => ({ path, name, head: headOf(path, door) }));
  const spoken = new Set(heads.flatMap(({ head }) => (head.hasMessages ? [head.id] : [])));
  const names = new Set(files.map(({ name }) => name));
  for (const { path, name, head } of heads) {
    const isLeft = !head.hasMessages && head.id !== null && spoken.has(head.id);
    // A resumed session of an older version is written anew, beside the old file.
    if (!isLeft && !(name.endsWith(".json") && names.has(`${name}l`))) yield placeOf(path, head, door);
  }
}

interface Head {
  readonly id: string | null;
  readonly hasMessages: boolean;
}

const HEAD_BYTES = 2 ** 16;

function headOf(path: string, door: Door): Head {
  try {
    using file = door.openRaw(path);
    const text = Buffer.from(file.read(0, HEAD_BYTES)).toString("utf8");
    const match = /"sessionId"\s*:\s*"([^"]*)"/.exec(text)?.[1];
    // A copy: a part of a text keeps all of it in memory.
    const id = match === undefined ? null : Buffer.from(match).toString();
    return { id, hasMessages: /\n\s*\{\s*"id"\s*:/.test(text) || file.size > HEAD_BYTES };
  } catch (error) {
    if (error instanceof Refused) return { id: null, hasMessages: false };
    throw error;
  }
}

function placeOf(path: string, { id }: Head, door: Door): SessionPlace {
  const ownId = id ?? basename(path).replace(/\.jsonl?$/, "");
  // The id comes from a file: it names a folder only if it is a name.
  const folder = /^[\w-]+$/.test(ownId) ? [...door.list(join(dirname(path), ownId))] : [];
  const parts = folder.filter(({ name, kind }) => kind === "file" && name.endsWith(".jsonl"));
  return { agent: "gemini", id: ownId, path, parts: parts.map((part) => part.path) };
}

const IDS_MAX = 100_000;

/** Records that stand there twice in a row, a file that is its own copy, and the way back to a message that is gone. */
class Doubles {
  #facts: Buffer | null = null;
  #message: Buffer | null = null;
  readonly #ids = new Set<string>();

  *add({ kind, place, bytes, id, value, state }: SessionRecord): Generator<ReadItem> {
    const own = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (kind === "facts" && state !== "partial") {
      if (this.#facts === null) this.#facts = Buffer.from(own);
      else if (this.#facts.equals(own)) yield { type: "problem", problem: problem("doubled-file", place) };
    }
    if (id !== null) {
      if (this.#message?.equals(own))
        yield { type: "problem", problem: problem("doubled-record", place, { detail: id }) };
      this.#message = own;
      this.#know(id);
    }
    if (kind === "snapshot")
      for (const message of listIn(fieldsOf(fieldsOf(value)["$set"])["messages"]))
        this.#know(textIn(fieldsOf(message)["id"]) ?? "");
    const to = kind === "$rewindTo" ? textIn(fieldsOf(value)["$rewindTo"]) : null;
    if (to !== null && this.#ids.size < IDS_MAX && !this.#ids.has(to))
      yield { type: "problem", problem: problem("lost-record", place, { detail: to, ...REWIND }) };
  }

  #know(id: string): void {
    if (this.#ids.size < IDS_MAX) this.#ids.add(id);
  }
}

const REWIND = {
  means: "The session goes back to a message that is missing here. Gemini CLI clears the whole conversation.",
  fix: "Restores the message where it is readable elsewhere; otherwise takes the step back out.",
};
