import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { SourceFile } from "../../files/source-file.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { CUT_OFF, LOST_INPUT } from "../../mend/words.ts";
import { type Stretch, scan } from "../../scan/scan.ts";
import { format, numbersIn, VERSION_MAX } from "./format.ts";

/** A line of the log as it will be written. */
export interface Line {
  readonly seq: number;
  /** How many numbers it has. */
  readonly count: number;
  readonly type: string;
  readonly time: number;
  /** Where it stands; null if `value` is written in its place. */
  readonly place: { readonly offset: number; readonly length: number } | null;
  readonly value?: Fields;
  readonly isMade?: boolean;
  /** Its end is lost. */
  readonly isCut?: boolean;
  /** `turn.step`, of what belongs to an answer. */
  readonly step: string;
  /** The calls in it, or the call it is about. */
  readonly calls: readonly string[];
}

/** The pieces of an answer whose message has not come. */
export interface Pieces {
  readonly blocks: Map<number, Fields>;
  readonly texts: Map<number, { type: string; text: string; id?: string; name?: string }>;
  readonly step: string;
  readonly turn: unknown;
  readonly number: unknown;
  last: number;
  time: number;
}

export interface Log {
  readonly header: Fields | null;
  readonly lines: readonly Line[];
  /** What the inbox took, and no message repeats. */
  readonly prompts: ReadonlyMap<string, { readonly message: Fields; readonly seq: number }>;
  readonly pieces: ReadonlyMap<string, Pieces>;
  /** What `tool/call` says of each call. */
  readonly calls: ReadonlyMap<string, Fields>;
  /** The provider and the model of the answers. */
  readonly source: Fields | null;
  readonly lost: readonly string[];
  /** Nothing had to be left out. */
  readonly isUnharmed: boolean;
}

/** What people, models and tools say. */
const MESSAGES: ReadonlySet<string> = new Set(["user/message", "assistant/message", "tool/result"]);

export function readLog(file: SourceFile): Log {
  const reader = new LogReader();
  for (const stretch of scan(file.chunks(), format)) reader.add(stretch);
  return reader;
}

class LogReader implements Log {
  header: Fields | null = null;
  readonly lines: Line[] = [];
  readonly prompts = new Map<string, { message: Fields; seq: number }>();
  readonly pieces = new Map<string, Pieces>();
  readonly calls = new Map<string, Fields>();
  source: Fields | null = null;
  readonly lost: string[] = [];
  isUnharmed = true;
  readonly #said = new Set<string>();

  add(stretch: Stretch): void {
    const { offset, length, line, state, damage } = stretch;
    let value = fieldsOf(stretch.value);
    let isCut = false;
    const isHalf = state === "partial" && damage.some((kind) => kind !== "invalid-utf8");
    if (isHalf || state === "unreadable" || !format.isRecord(value)) {
      const cut = isHalf ? cutMessage(value) : this.#numbered(value);
      if (value["type"] === "session" && this.header === null) this.header = wholeHeader(value);
      this.isUnharmed = false;
      if (cut === null || cut["type"] === "session") return;
      if (isHalf) this.lost.push(`The end of the record at line ${line} is lost.`);
      value = cut;
      isCut = isHalf;
    }
    if (value["type"] === "session") {
      this.header ??= value;
      return;
    }
    const mended = mend(value, this.calls, this.pieces.get(factsOf(value).step));
    const isAsItWas = state === "intact" && mended === stretch.value;
    this.#learn(mended);
    const number = Number(mended["seq"] ?? mended["seq0"]);
    this.lines.push({
      ...{ seq: number, count: numbersIn(mended), type: String(mended["type"]), ...factsOf(mended) },
      ...(isCut && { isCut }),
      ...(isAsItWas ? { place: { offset, length } } : { place: null, value: mended }),
    });
  }

  /** A message that is whole apart from its number or its time: with those that follow the line before; or null. */
  #numbered(value: Fields): Fields | null {
    const { type, seq, time, data } = value;
    if (!MESSAGES.has(String(type)) || typeof data !== "object" || data === null) return null;
    const last = this.lines.at(-1);
    const own = Number.isInteger(seq) ? seq : last ? last.seq + last.count : 0;
    return { ...value, seq: own, time: typeof time === "number" ? time : (last?.time ?? 0) };
  }

  #learn(value: Fields): void {
    const { type } = value;
    const data = fieldsOf(value["data"]);
    const seq = Number(value["seq"] ?? value["seq0"]);
    if (type === "agent/inbox/spliced")
      for (const message of listIn(data["inserted"]).map(fieldsOf)) {
        const id = textIn(message["id"]);
        if (id !== null && !this.#said.has(id)) this.prompts.set(id, { message, seq });
      }
    else if (type === "user/message") {
      this.#said.add(String(data["id"]));
      this.prompts.delete(String(data["id"]));
    } else if (type === "tool/call") this.calls.set(String(data["callId"]), data);
    else if (type === "assistant/message") {
      const source = fieldsOf(fieldsOf(data["message"])["source"]);
      if (textIn(source["provider"]) !== null) this.source = source;
      this.pieces.delete(factsOf(value).step);
    } else if (type === "request/header") {
      const { provider, model } = fieldsOf(fieldsOf(data["header"])["config"]);
      this.source ??= { kind: "model", provider, model };
    } else if (type === "assistant/chunk" || String(type).endsWith("-chunks")) this.#piece(value, data, seq);
  }

  #piece(value: Fields, data: Fields, seq: number): void {
    const { step } = factsOf(value);
    const known = this.pieces.get(step);
    const pieces = known ?? {
      ...{ blocks: new Map(), texts: new Map(), step, turn: data["turn"], number: data["step"], last: 0, time: 0 },
    };
    if (!known) this.pieces.set(step, pieces);
    pieces.last = Math.max(pieces.last, seq + numbersIn(value) - 1);
    pieces.time = Number(value["time"] ?? value["time0"]);
    const chunk = fieldsOf(data["chunk"]);
    const index = Number(chunk["index"] ?? data["index"]);
    if (chunk["type"] === "block-end") pieces.blocks.set(index, fieldsOf(chunk["block"]));
    const type = /^(text|reasoning|tool-call)/.exec(String(chunk["type"] ?? value["type"]))?.[1];
    const more = listIn(data["texts"] ?? data["args"]).join("") || textIn(chunk["text"] ?? chunk["argumentsDelta"]);
    if (type === undefined || !more) return;
    const before = pieces.texts.get(index);
    const { id, name } = chunk["id"] === undefined ? data : chunk;
    pieces.texts.set(index, {
      ...{ type, text: (before?.text ?? "") + more },
      ...(typeof id === "string" && { id }),
      ...(typeof (name ?? before?.name) === "string" && { name: String(name ?? before?.name) }),
    });
  }
}

export function factsOf(value: Fields): Pick<Line, "time" | "step" | "calls"> {
  const data = fieldsOf(value["data"]);
  const message = fieldsOf(data["message"]);
  const step = `${data["turn"]}.${data["step"]}`;
  const time = Number(value["time"] ?? value["time0"] ?? 0);
  const blocks = listIn(message["content"]).map(fieldsOf);
  const calls = blocks.flatMap(({ type, id }) => (type === "tool-call" ? [String(id)] : []));
  const about = textIn(data["callId"]) ?? textIn(fieldsOf(message["source"])["callId"]);
  return { time, step, calls: about === null ? calls : [about] };
}

/** The same record if nothing is wrong with its calls and results. */
function mend(value: Fields, calls: ReadonlyMap<string, Fields>, pieces: Pieces | undefined): Fields {
  const data = fieldsOf(value["data"]);
  const message = fieldsOf(data["message"]);
  let isChanged = false;
  const content = listIn(message["content"]).map((each) => {
    const block = fieldsOf(each);
    if (value["type"] === "assistant/message" && block["type"] === "tool-call" && !isInput(block["arguments"])) {
      isChanged = true;
      const same = [...(pieces?.blocks.values() ?? [])].find(({ id }) => id === block["id"]);
      const known = (same ?? calls.get(String(block["id"])))?.["arguments"];
      return { ...block, arguments: isInput(known) ? known : JSON.stringify(LOST_INPUT) };
    }
    const clean = value["type"] === "tool/result" ? cleanResult(block["content"]) : null;
    if (clean === null) return each;
    isChanged = true;
    return { ...block, content: clean.content };
  });
  return isChanged ? { ...value, data: { ...data, message: { ...message, content } } } : value;
}

/** A tool without parameters may be called with nothing. */
export function isInput(input: unknown): boolean {
  if (input === "") return true;
  try {
    const value: unknown = JSON.parse(textIn(input) ?? "null");
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Half a message with what can be read of its text; null if nothing of it was said. */
function cutMessage(value: Fields): Fields | null {
  const { type, seq, time } = value;
  const data = fieldsOf(value["data"]);
  const message = type === "user/message" ? data : fieldsOf(data["message"]);
  const blocks = listIn(message["content"]).map(fieldsOf);
  if (!Number.isInteger(seq) || typeof time !== "number" || (type !== "user/message" && type !== "tool/result"))
    return null;
  if (type === "user/message") {
    const text = textIn(blocks.at(-1)?.["text"]);
    if (text === null || text === "") return null;
    const content = [...blocks.slice(0, -1), { type: "text", text: `${text}\n${CUT_OFF}` }];
    const source = textIn(fieldsOf(data["source"])["kind"]) === null ? { kind: "user" } : data["source"];
    const id = textIn(data["id"]) ?? `holdfast-doctor-${seq}`;
    return { type, seq, time, data: { content, source, role: "user", id }, surfaceOp: "append" };
  }
  const callId = textIn(fieldsOf(message["source"])["callId"]) ?? textIn(blocks[0]?.["toolCallId"]);
  const texts = listIn(blocks[0]?.["content"]).flatMap((each) => textIn(fieldsOf(each)["text"]) ?? []);
  if (callId === null || texts.join("") === "") return null;
  const text = `${texts.join("\n")}\n${CUT_OFF}`;
  return {
    type,
    seq,
    time,
    data: { turn: data["turn"], step: data["step"], message: resultOf(callId, text, Number(seq)) },
    surfaceOp: "append",
  };
}

export function resultOf(callId: string, text: string, seq: number): Fields {
  const content = [{ type: "tool-result", toolCallId: callId, content: [{ type: "text", text }], isError: false }];
  return { source: { kind: "tool", callId }, content, role: "user", id: `holdfast-doctor-${seq}` };
}

/** A header of which the end is missing, if what counts of it is there. */
function wholeHeader(value: Fields): Fields | null {
  const { version, id, createdAt, cwd } = value;
  const isKnown = Number.isInteger(version) && Number(version) >= 0 && Number(version) <= VERSION_MAX;
  if (!isKnown || typeof id !== "string" || !Number.isSafeInteger(createdAt) || typeof cwd !== "string") return null;
  // A folder that is cut off is another folder.
  if (Object.keys(value).at(-1) === "cwd") return null;
  return { delegationDepth: 0, ...value };
}
