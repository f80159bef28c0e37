import { basename, dirname, join } from "node:path";
import type { Agent, ReadItem, SessionPlace } from "../../contract/agent.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import type { SessionRecord } from "../../contract/record.ts";
import { fieldsOf } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import { openLines, readLines } from "../../jsonl/read-lines.ts";
import { LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { format, isOfDsh, numbersIn, VERSION_MAX } from "./format.ts";
import { plan } from "./plan.ts";

const REPAIRS: ReadonlySet<ProblemKind> = new Set([
  ...LINE_REPAIRS,
  ...(["header-missing", "header-damaged", "lost-record", "overlapping-sequence", "truncated-compression"] as const),
  ...([
    "result-before-call",
    "result-without-call",
    "call-without-result",
    "bad-tool-input",
    "poisoned-result",
  ] as const),
]);

/** DeepSeek Harness: `<home>/sessions/<folder of the project>/<session>/session.jsonl.zstd`, or `session.jsonl`. */
export const dsh: Agent = {
  name: "dsh",
  title: "DeepSeek Harness",
  programs: ["dsh"],
  versions: ["0.1.0-rc.8"],
  // What a kill left open gets a result, in the file, when the session is loaded.
  rules: { chain: "order", closesOpenCalls: true, repeatsIds: false, sequence: "none" },

  homes: ({ DSH_HOME }, home) => [join(DSH_HOME || join(home, ".dsh"), "sessions")],

  detect({ values }) {
    return values.length === 0 ? 0 : values.filter(isOfDsh).length / values.length;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root);
    else yield* findIn(root, door, 2);
  },

  repairs: REPAIRS,
  plan,

  async read(session, door) {
    const file = await openLines(session.path, door);
    return (function* (): Generator<ReadItem> {
      const numbers = new Numbers(session);
      for (const item of readLines(file, format)) {
        if (item.type === "record") yield* numbers.add(item.record);
        else yield item;
      }
    })();
  },
};

/** `depth`: how many folders are below this one. */
function* findIn(folder: string, door: Door, depth: number): Generator<SessionPlace> {
  for (const { path, name, kind } of door.list(folder)) {
    if (kind === "folder" && depth > 0) yield* findIn(path, door, depth - 1);
    if (kind === "file" && /^session\.jsonl(?:\.zstd)?$/.test(name)) yield placeOf(path);
  }
}

function placeOf(path: string): SessionPlace {
  const folder = basename(dirname(path));
  const isOwn = /^session\.jsonl/.test(basename(path));
  return { agent: "dsh", id: isOwn ? folder : basename(path).replace(/\.jsonl.*$/, ""), path, parts: [] };
}

/** The numbers count from 0 without a gap: DeepSeek Harness refuses a session in which they do not. */
class Numbers {
  readonly #session: SessionPlace;
  #next = 0;
  /** What damaged text hid is reported already. */
  #isSure = true;
  #hasHeader = false;
  #isDoubled = false;
  #last: Buffer | null = null;

  constructor(session: SessionPlace) {
    this.#session = session;
  }

  *add(record: SessionRecord): Generator<ReadItem> {
    const { sequence, value, state, units } = record;
    const isWhole = state === "intact" || state === "recovered";
    if (isWhole && format.isHeader!(value)) yield* this.#header(record);
    if (!isWhole || sequence === null) {
      if (!isWhole) this.#isSure = false;
      yield { type: "record", record };
      return;
    }
    const isAgain = sequence < this.#next;
    if (isAgain && !this.#isDoubled) {
      const isSame = this.#last?.equals(record.bytes) === true;
      yield found(isSame ? "doubled-record" : "overlapping-sequence", record, `${sequence} after ${this.#next - 1}`);
    } else if (sequence > this.#next && this.#isSure)
      yield found("lost-record", record, `${this.#next} to ${sequence - 1}`);
    if (!isAgain) {
      this.#next = sequence + numbersIn(value);
      this.#isSure = true;
    }
    // It stands in the reader's buffer.
    const isSecond = isAgain && (this.#isDoubled || this.#last?.equals(record.bytes) === true);
    this.#last = Buffer.from(record.bytes);
    yield { type: "record", record: isSecond ? { ...record, units: [], repeats: units } : record };
  }

  *#header(record: SessionRecord): Generator<ReadItem> {
    if (this.#hasHeader) {
      this.#isDoubled = true;
      yield found("doubled-file", record, this.#session.id);
      return;
    }
    this.#hasHeader = true;
    const { version, id } = fieldsOf(record.value);
    if (!(Number(version) >= 0 && Number(version) <= VERSION_MAX))
      yield found("unknown-version", record, String(version));
    const folder = basename(dirname(this.#session.path));
    if (folder.startsWith("session-") && id !== folder) yield found("wrong-folder", record, String(id));
  }
}

function found(kind: ProblemKind, { place }: SessionRecord, detail: string): ReadItem {
  return { type: "problem", problem: problem(kind, place, { detail }) };
}
