import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { type Entry, madeUuid } from "../../mend/entries.ts";
import { CUT_OFF } from "../../mend/words.ts";
import { type Events, UUID } from "./events.ts";
import { format } from "./format.ts";

const ROLES = { "user.message": "user", "assistant.message": "assistant" } as const;
type Speech = keyof typeof ROLES;

/** Completes an event of which only a part can be read, or removes it if nobody says anything in it. */
export function completeEvent(entry: Entry, events: Events): void {
  const value = events.fields(entry);
  const data = fieldsOf(value["data"]);
  const type = String(value["type"]);
  // A few bytes are lost, and nothing behind them.
  const isWhole = format.isRecord(value) && !entry.damage.includes("torn-record") && entry.kind !== "unknown";
  const why = "keeps what can be read of an event";
  if (isWhole) {
    const restored = type in ROLES ? withWhole(type as Speech, data, events) : null;
    const ids = idsFor(entry, value, events);
    if (restored)
      events.replace(entry, { ...value, ...ids, ...threadFor(entry, events), data: restored }, "brought back", why);
    else events.replace(entry, { ...value, ...ids, ...threadFor(entry, events) }, "unknown", why);
    return;
  }
  const speech = speechOf(type, data, events);
  if (speech === null) {
    completeEnd(entry, events);
    if (entry.replacement?.why === KEEPS_END) return;
    events.remove(entry, "removes a fragment without readable text");
    if (type !== "session.start") events.lost.push(`The record at line ${entry.place?.line} is lost.`);
    return;
  }
  events.replace(
    entry,
    { type, data: speech, ...idsFor(entry, value, events), ...threadFor(entry, events) },
    "unknown",
    why,
  );
  events.lost.push(`The end of the record at line ${entry.place?.line} is lost.`);
}

const KEEPS_END = "keeps the readable end of an event";

/** Brings back what is said in the end of an event whose beginning is lost. */
export function completeEnd(entry: Entry, events: Events): void {
  const value = fieldsOf(events.lines.suffixOf(entry));
  const data = fieldsOf(value[""]);
  const type =
    "toolRequests" in data
      ? "assistant.message"
      : "success" in data && "toolCallId" in data
        ? "tool.execution_complete"
        : "delivery" in data
          ? "user.message"
          : null;
  if (type === null || !UUID.test(String(value["id"]))) return;
  const { "": _, ...rest } = data;
  const speech = speechOf(type, { ...rest, rte: false }, events);
  if (speech === null) return;
  const { id, timestamp, parentId } = value;
  const agentId = value["agentId"] === undefined ? {} : { agentId: value["agentId"] };
  events.replace(entry, { type, data: speech, id, timestamp, parentId, ...agentId }, "unknown", KEEPS_END);
  events.lost.push(`The beginning of the record at line ${entry.place?.line} is lost.`);
}

/** The text of a message as it stands elsewhere. */
function withWhole(type: Speech, data: Fields, { twins }: Events): Fields | null {
  const text = textIn(data["content"]) ?? "";
  const whole = text.includes("\ufffd") ? twins.whole(ROLES[type], text) : null;
  if (whole === null) return null;
  const transformed = textIn(data["transformedContent"]);
  return { ...data, content: whole, ...(transformed === null ? {} : { transformedContent: whole }) };
}

/** What is said in the beginning of an event, with a mark where it ends. */
function speechOf(type: string, data: Fields, events: Events): Fields | null {
  const fields = Object.keys(data);
  if (type === "tool.execution_complete" && typeof data["toolCallId"] === "string") {
    const result = fieldsOf(data["result"] ?? data["error"]);
    const text = textIn(result["content"] ?? result["message"]);
    if (text === null || typeof data["success"] !== "boolean") return null;
    // What stands behind the text shows that it is whole.
    const isWhole = Object.keys(result).length > 1 || fields.at(-1) !== "result";
    const content = isWhole ? text : (events.twins.results.get(data["toolCallId"]) ?? `${text}\n${CUT_OFF}`);
    const outcome = data["success"] ? { result: { content } } : { error: { message: content, code: "lost" } };
    return { ...data, result: undefined, error: undefined, toolTelemetry: undefined, ...outcome };
  }
  if (!(type in ROLES)) return null;
  const text = textIn(data["content"]);
  if (text === null || text === "") return null;
  const isWhole = fields.at(-1) !== "content";
  const content = isWhole ? text : (events.twins.whole(ROLES[type as Speech], text) ?? `${text}\n${CUT_OFF}`);
  const requests = listIn(data["toolRequests"]);
  // The last of its calls may be half, unless something stands behind its input.
  const names = Object.keys(fieldsOf(requests.at(-1)));
  const isHalf = fields.at(-1) === "toolRequests" && !names.slice(0, -1).includes("arguments");
  const toolRequests = isHalf ? requests.slice(0, -1) : requests;
  const messageId = textIn(data["messageId"]) ?? madeUuid("message", text);
  if (type === "user.message") return { ...data, messageId, content, transformedContent: undefined };
  return { ...data, messageId, content, toolRequests, rte: false };
}

/** The sub-agent that it belongs to: a broken name would make it a conversation of its own. */
function threadFor(entry: Entry, { lines }: Events): Fields {
  const isKnown = lines.living.some((other) => other !== entry && other.thread === entry.thread);
  const before = lines.living.slice(0, lines.living.indexOf(entry)).at(-1);
  const thread = isKnown ? entry.thread : (before?.thread ?? "main");
  return thread === "main" ? {} : { agentId: thread };
}

/** Copilot refuses a time without its zone. */
const TIME = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/;

/** The id that the next event names, and the time of one nearby. */
function idsFor(entry: Entry, { id, timestamp, parentId }: Fields, events: Events): Fields {
  const all = events.lines.living;
  const at = all.indexOf(entry);
  const next = all.slice(at + 1).find((other) => other.state !== "partial");
  const near = next ?? all.slice(0, at).findLast((other) => other.state !== "partial");
  const known = new Set(all.map((other) => (other === entry ? null : other.id)));
  const named = next?.parent && UUID.test(next.parent) && !known.has(next.parent) ? next.parent : null;
  const time = textIn(timestamp);
  const isTime = time !== null && TIME.test(time) && !Number.isNaN(Date.parse(time));
  return {
    id: UUID.test(String(id)) ? id : (named ?? madeUuid("fragment", String(entry.place?.offset))),
    timestamp: isTime ? time : ((near ? events.fields(near)["timestamp"] : null) ?? new Date(0).toISOString()),
    parentId: typeof parentId === "string" ? parentId : null,
  };
}
