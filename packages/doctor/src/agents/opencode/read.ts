import type { ReadItem } from "../../contract/agent.ts";
import { type Problem, type ProblemKind, problem } from "../../contract/problem.ts";
import type { Place, RecordState, Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import { readPrefix } from "../../scan/read-prefix.ts";
import { isInterrupted, kindOfPart, lacksResult, type MessageFacts, messageFacts, unitsOfPart } from "./format.ts";
import type { Listed, Rows } from "./rows.ts";

/** How deep sub-agents may start others. */
const DEPTH_MAX = 32;
const NO_BYTES = new Uint8Array(0);

/** The records of a session and of its sub-agents, each a thread with the id of its session. */
export function* readSession(rows: Rows, root: string): Generator<ReadItem> {
  yield* items(rows.problems());
  const seen = new Set([root]);
  const left = [{ id: root, depth: 0 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    yield* new ThreadReader(rows, next.id, next.id === root).read();
    if (next.depth === DEPTH_MAX) continue;
    for (const child of rows.children(next.id).toReversed()) {
      if (seen.has(child)) continue;
      seen.add(child);
      left.push({ id: child, depth: next.depth + 1 });
    }
  }
}

interface Content {
  readonly value: unknown;
  readonly state: RecordState;
}

class ThreadReader {
  readonly #rows: Rows;
  readonly #session: string;
  readonly #isMain: boolean;
  readonly #known = new Set<string>();
  /** The messages so far, with their parts: a summary may leave the last of them in view. */
  readonly #before: { readonly message: string; readonly parts: string[] }[] = [];
  #retained: readonly string[] = [];
  /** What each answer says that it answers, and the first answer that says so. */
  readonly #prompts = new Map<string, Place>();

  constructor(rows: Rows, session: string, isMain: boolean) {
    this.#rows = rows;
    this.#session = session;
    this.#isMain = isMain;
  }

  *read(): Generator<ReadItem> {
    yield* this.#head();
    let before: Listed | null = null;
    for (const message of this.#rows.messages(this.#session)) {
      if (before) yield* this.#message(before, false);
      before = message;
    }
    if (before) yield* this.#message(before, true);
    for (const [id, place] of this.#prompts)
      if (!this.#known.has(id)) yield found("lost-record", place, { ...PROMPT, detail: id });
  }

  *#head(): Generator<ReadItem> {
    const listed = this.#rows.session(this.#session);
    const { value, state } = yield* this.#content(listed, SESSION);
    const title = textIn(fieldsOf(value)["title"]);
    const units: Unit[] = title !== null && this.#isMain ? [{ type: "title", text: title }] : [];
    yield this.#record(listed, { value, state }, "session", units);
  }

  *#message(listed: Listed, isLast: boolean): Generator<ReadItem> {
    const content = yield* this.#content(listed, MESSAGE);
    const facts = messageFacts(fieldsOf(content.value), isLast);
    this.#known.add(listed.id);
    if (facts.parent !== null && !this.#prompts.has(facts.parent)) this.#prompts.set(facts.parent, listed.place);
    yield this.#record(listed, content, facts.role ?? "unknown", []);
    const parts: string[] = [];
    this.#before.push({ message: listed.id, parts });
    const interrupted: ReadItem[] = [];
    for (const part of this.#rows.parts(this.#session, listed.id)) {
      parts.push(part.id);
      const all = [...this.#part(part, { ...facts, retained: this.#retained })];
      const record = all.find((item) => item.type === "record");
      // Calls that were running stand behind those of their batch that ended.
      if (isLast && record && isInterrupted(fieldsOf(record.record.value))) interrupted.push(...all);
      else yield* all;
    }
    yield* interrupted;
  }

  *#part(listed: Listed, message: MessageFacts): Generator<ReadItem> {
    const content = yield* this.#content(listed, PART);
    const fields = fieldsOf(content.value);
    if (content.state !== "partial" && lacksResult(fields))
      yield found("call-without-result", listed.place, { detail: String(fields["tool"]) });
    if (fields["type"] === "compaction") this.#retain(textIn(fields["tail_start_id"]));
    const units = content.value === undefined ? [] : unitsOfPart(fields, message);
    yield this.#record(listed, content, kindOfPart(fields), units);
  }

  #retain(first: string | null): void {
    const from = first === null ? -1 : this.#before.findIndex(({ message }) => message === first);
    // The last one is the message that asks for the summary.
    this.#retained = from < 0 ? [] : this.#before.slice(from, -1).flatMap(({ parts }) => parts);
  }

  /** What an object says: in its own place, or where it is said again. */
  *#content({ id, row, place }: Listed, words: Words): Generator<ReadItem, Content> {
    const value = parsed(row?.text ?? null);
    if (value !== undefined && row?.isUtf8 === true) return { value, state: "intact" };
    const prefix = value === undefined && row?.text ? readPrefix(row.text) : null;
    // All of it is there: only a bracket is missing, or a line break stands raw in a string.
    const isWhole = prefix !== null && prefix.end !== "cut" && row!.text!.slice(prefix.at).trim() === "";
    const own = isWhole && Object.keys(fieldsOf(prefix.value)).length > 0 ? [fieldsOf(prefix.value)] : null;
    const [twin = null] = own ?? this.#rows.twins(this.#session, id);
    const detail = twin === null ? id : `${id}, readable in another place`;
    if (row === null) yield found("missing-row", place, { detail, means: words.lost });
    else if (value !== undefined) yield found("invalid-utf8", place, { detail: id });
    else yield found("damaged-row", place, { detail, means: words.damaged });
    if (twin !== null) return { value: twin, state: "recovered" };
    if (value !== undefined) return { value, state: "partial" };
    const isObject = typeof prefix?.value === "object" && prefix.value !== null;
    return isObject ? { value: prefix.value, state: "partial" } : { value: undefined, state: "unreadable" };
  }

  #record({ id, row, place }: Listed, { value, state }: Content, kind: string, units: readonly Unit[]): ReadItem {
    const bytes = row?.bytes ?? NO_BYTES;
    const record = { place, bytes, length: bytes.length, kind, state, value, id, at: row?.at ?? null, units };
    const thread = this.#isMain ? "main" : this.#session;
    return { type: "record", record: { ...record, thread, parent: null, sequence: null } };
  }
}

interface Words {
  readonly lost: string;
  readonly damaged: string;
}
const SESSION: Words = {
  lost: "The row of the session is lost. OpenCode neither lists nor loads it; its messages are there.",
  damaged: "The session's own record cannot be read. OpenCode refuses the session.",
};
const MESSAGE: Words = {
  lost: "A message is lost. OpenCode loads the session without it.",
  damaged: "This message cannot be read. OpenCode refuses the whole session.",
};
const PART: Words = {
  lost: "A part of a message is lost. OpenCode loads the session without it.",
  damaged: "This part of a message cannot be read. OpenCode refuses the whole session.",
};
const PROMPT = {
  means: "The prompt that this answers is lost. OpenCode loads the session without it.",
  fix: "Restores the prompt where it is readable elsewhere.",
};

function parsed(text: string | null): Fields | undefined {
  if (text === null) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

const found = (kind: ProblemKind, place: Place, more: Parameters<typeof problem>[2]): ReadItem => ({
  type: "problem",
  problem: problem(kind, place, more),
});

function* items(problems: Iterable<Problem>): Generator<ReadItem> {
  for (const each of problems) yield { type: "problem", problem: each };
}
