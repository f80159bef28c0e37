import type { SessionPlace } from "../../contract/agent.ts";
import type { Plan } from "../../contract/plan.ts";
import type { SessionRecord } from "../../contract/record.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import { DatabaseCopy } from "../../files/database.ts";
import type { Door } from "../../files/door.ts";
import { replaceDatabase } from "../../mend/replace-database.ts";
import { LOST_RECORD } from "../../mend/words.ts";
import { DatabaseRows, JSON_COLUMNS } from "./database.ts";
import { makeMessage, mendPart, sessionColumns } from "./mend-values.ts";
import { readSession } from "./read.ts";
import { RowWriter } from "./row-writer.ts";
import { SCHEMA } from "./schema.ts";

/**
 * Repairs OpenCode's database: a new one with every row that can be read, and with what the session lacks. The rows of
 * other sessions stay as they are; of a damaged file, each session gets back what its log of events repeats.
 */
export function planDatabase(session: SessionPlace, door: Door): Plan | null {
  const { path } = session;
  if ((door.facts(path)?.size ?? 0) === 0) return null;
  const database = DatabaseCopy.shared(path, door, SCHEMA);
  const rows = new DatabaseRows(database);
  const isDamaged = database.damage.length > 0;
  const all = rows.roots().map(({ id }) => id);
  if (all.length === 0) return null;
  const sum = new Sum();
  const copy = database.changed(door, (target) => {
    const writer = new RowWriter(target);
    for (const id of isDamaged ? all : [session.id]) repairSession(rows, id, writer, sum);
    if (isDamaged) writer.restoreSurroundings();
  });
  if (!isDamaged && sum.rows === 0) return null;
  const what = isDamaged ? "builds a new database from every readable row" : "repairs rows";
  const grade = sum.made > 0 ? "rebuilt" : "brought back";
  return {
    changes: replaceDatabase(path, { copy, state: database.state }, grade, `${what}${sum.words()}`, door),
    lost: sum.lost,
  };
}

/** What was done, for the report. */
class Sum {
  brought = 0;
  made = 0;
  readonly lost: string[] = [];

  get rows(): number {
    return this.brought + this.made;
  }

  words(): string {
    const brought = this.brought > 0 ? `; ${this.brought} rows come back from the log of events` : "";
    return `${brought}${this.made > 0 ? `; ${this.made} rows are marked as made up or cut off` : ""}`;
  }
}

function repairSession(rows: DatabaseRows, root: string, writer: RowWriter, sum: Sum): void {
  let thread: ThreadRepair | null = null;
  const missing = new Set<string>();
  for (const item of readSession(rows, root)) {
    const id = String((item.type === "problem" ? item.problem : item.record).place.row?.id);
    if (item.type === "problem") {
      if (item.problem.kind === "missing-row") missing.add(id);
      if (item.problem.kind === "lost-record") thread?.addPrompt(item.problem.detail ?? "", id);
      continue;
    }
    const { record } = item;
    const table = record.place.row?.table;
    if (table === "session") {
      thread?.end();
      thread = new ThreadRepair(rows, id, writer, sum);
      thread.session(record, missing.delete(id));
    } else if (table === "message") thread?.message(record, missing.delete(id));
    else thread?.part(record, missing.delete(id));
  }
  thread?.end();
}

/** The parts that only the model's messages have. */
const ANSWERS: ReadonlySet<string> = new Set(["tool", "reasoning", "step-start", "step-finish", "patch", "retry"]);

interface OpenMessage {
  readonly id: string;
  readonly record: SessionRecord;
  readonly isMissing: boolean;
  /** What its parts show of it. */
  isAnswer: boolean;
  firstAt: number | null;
}

/** The repair of one conversation, in its order. */
class ThreadRepair {
  readonly #rows: DatabaseRows;
  readonly #id: string;
  readonly #writer: RowWriter;
  readonly #sum: Sum;
  readonly #like: { user: Fields | null; assistant: Fields | null } = { user: null, assistant: null };
  readonly #times = new Map<string, number>();
  #session: { readonly columns: Fields; readonly isMade: boolean } = { columns: {}, isMade: false };
  #open: OpenMessage | null = null;
  #prompt: string | null = null;
  #lastRole: "user" | "assistant" | null = null;
  #lastAt = 0;
  #firstAt = 0;

  constructor(rows: DatabaseRows, id: string, writer: RowWriter, sum: Sum) {
    this.#rows = rows;
    this.#id = id;
    this.#writer = writer;
    this.#sum = sum;
  }

  session({ value, state }: SessionRecord, isMissing: boolean): void {
    const fields = fieldsOf(value);
    if (state === "intact") {
      this.#session = { columns: fields, isMade: false };
      return;
    }
    const columns = state === "recovered" ? sessionColumns(fields) : {};
    this.#session = { columns, isMade: isMissing };
    if (isMissing) return;
    // Of a row that is there, only these can be damaged.
    const json = JSON_COLUMNS.map((name) => [name, columns[name] ?? null]);
    this.#writer.update("session", this.#id, Object.fromEntries(json));
    this.#count(state === "recovered");
  }

  message(record: SessionRecord, isMissing: boolean): void {
    this.#close();
    const id = String(record.id);
    this.#open = { id, record, isMissing, isAnswer: false, firstAt: null };
  }

  part(record: SessionRecord, isMissing: boolean): void {
    const message = this.#open;
    if (!message) return;
    const id = String(record.id);
    const mended = mendPart(record.value, record.state, () => this.#rows.twins(this.#id, id));
    const value = mended?.value ?? fieldsOf(record.value);
    const [at, until] = this.#rows.timesOf(this.#id, id) ?? [record.at ?? message.firstAt ?? this.#lastAt, 0];
    message.isAnswer ||=
      ANSWERS.has(String(value["type"])) || (value["type"] === "text" && value["time"] !== undefined);
    message.firstAt ??= record.at ?? at;
    if (mended === null) return;
    const data = JSON.stringify(without(value, ["id", "messageID", "sessionID"]));
    if (isMissing) {
      const owner = { id, message_id: message.id, session_id: this.#id };
      this.#writer.insert("part", { ...owner, time_created: at, time_updated: Math.max(at, until), data });
    } else this.#writer.update("part", id, { data });
    this.#count(mended.grade === "brought back");
    if (mended.grade === "unknown") this.#sum.lost.push(`The end of a part of message ${message.id} is lost.`);
  }

  /** The prompt that an answer names is nowhere. */
  addPrompt(id: string, answer: string): void {
    this.#close();
    if (!/^msg_\w+$/.test(id)) return;
    const at = (this.#times.get(answer) ?? this.#firstAt) - 1;
    const data = makeMessage({}, this.#frame("user", at));
    const row = { session_id: this.#id, time_created: at, time_updated: at };
    this.#writer.insert("message", { ...row, id, data });
    this.#writer.insert("part", { ...row, id: partFor(id), message_id: id, data: { type: "text", text: LOST_RECORD } });
    this.#sum.made++;
    this.#sum.lost.push(`The prompt ${id} is lost.`);
  }

  end(): void {
    this.#close();
    if (!this.#session.isMade) return;
    const { columns } = this.#session;
    this.#writer.insert("session", {
      ...{ project_id: "global", slug: "recovered", directory: this.#folder(), version: "unknown" },
      ...{ title: "Recovered by holdfast doctor", time_created: this.#firstAt, time_updated: this.#lastAt },
      ...defined(columns),
      id: this.#id,
    });
    this.#count(columns["id"] !== undefined);
  }

  #close(): void {
    const message = this.#open;
    this.#open = null;
    if (!message) return;
    const { id, record, isMissing } = message;
    const value = fieldsOf(record.value);
    const said = value["role"];
    const isFirst = this.#lastRole === null;
    const guess = message.isAnswer || (!isFirst && this.#lastRole === "user") ? "assistant" : "user";
    const role = said === "user" || said === "assistant" ? said : guess;
    const at = record.at ?? timeOf(value) ?? message.firstAt ?? this.#lastAt;
    const isKnown = record.state === "intact" || record.state === "recovered";
    const whole = isKnown ? value : makeMessage(value, this.#frame(role, at));
    if (record.state !== "intact") {
      const data = JSON.stringify(without(whole, ["id", "sessionID"]));
      const end = Number(fieldsOf(whole["time"])["completed"] ?? at);
      const row = { id, session_id: this.#id, time_created: at, time_updated: end, data };
      if (isMissing) this.#writer.insert("message", row);
      else this.#writer.update("message", id, { data });
      this.#count(isKnown);
    }
    if (isKnown) this.#like[role] = whole;
    if (role === "user") this.#prompt = id;
    this.#times.set(id, at);
    this.#lastRole = role;
    this.#firstAt ||= at;
    this.#lastAt = Math.max(this.#lastAt, at);
  }

  #frame(role: "user" | "assistant", at: number) {
    const model = parsed(this.#session.columns["model"]);
    return { role, at, prompt: this.#prompt, like: this.#like[role], folder: this.#folder(), model };
  }

  #folder(): string {
    const { cwd } = fieldsOf(this.#like.assistant?.["path"]);
    return textIn(this.#session.columns["directory"]) ?? textIn(cwd) ?? "/";
  }

  #count(isBrought: boolean): void {
    if (isBrought) this.#sum.brought++;
    else this.#sum.made++;
  }
}

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
const defined = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const timeOf = (value: Fields): number | null => {
  const { created } = fieldsOf(value["time"]);
  return typeof created === "number" ? created : null;
};

/** An id as OpenCode makes them, the same each time. */
const partFor = (message: string): string => `prt_${message.slice(4, 16)}holdfastdoctor`;

function parsed(text: unknown): Fields {
  try {
    return fieldsOf(JSON.parse(String(text)));
  } catch {
    return {};
  }
}
