import { INTERNAL, type Line, lineOf, messageOf, type RequestId } from "../record/message.ts";

/** A line that is too long to be kept, as far as its beginning says what it is. */
export interface LongLine {
  readonly kind: "request" | "response" | "unknown";
  /** Null also if the beginning does not say it. */
  readonly id: RequestId;
  readonly method: string | null;
  /** The session that it is about. */
  readonly session: string | null;
}

/** JSON-RPC's code for a request that is not accepted as one. */
const INVALID_REQUEST = -32600;
/** So much of the line is looked at. */
const START_BYTES = 64 * 1024;
/** A member of an object, with its value unless that is an object, an array, or longer than what is looked at. */
const MEMBER =
  /\s*[{,]\s*("(?:[^"\\]|\\.)*")\s*:\s*(?:("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|null|true|false)(?=\s*[,}]))?/y;

/** `parts`: the line as far as it came. Programs write a message's id, method and session before what is long in it. */
export function longLineIn(parts: readonly Buffer[]): LongLine {
  const start = beginningOf(parts).toString("utf8");
  const own = new Map<string, unknown>();
  const params = new Map<string, unknown>();
  let members = own;
  MEMBER.lastIndex = 0;
  for (let found = MEMBER.exec(start); found; found = MEMBER.exec(start)) {
    const name = String(jsonIn(found[1]!));
    members.set(name, found[2] === undefined ? undefined : jsonIn(found[2]));
    if (found[2] !== undefined) continue;
    if (members !== own || name !== "params") break;
    members = params;
  }
  const id = own.get("id");
  const isId = typeof id === "string" || typeof id === "number";
  const isCall = own.has("method") || own.has("params");
  const isResponse = own.has("result") || own.has("error");
  return {
    kind: !isId ? "unknown" : isCall ? "request" : isResponse ? "response" : "unknown",
    id: isId ? id : null,
    method: wordIn(own.get("method")),
    session: wordIn(params.get("sessionId")),
  };
}

/** For the one who sent it, and waits for an answer if it was a request. */
export function refusalOf({ id }: LongLine): Buffer {
  return lineOf({ id, error: { code: INVALID_REQUEST, message: `${TOO_LONG} Send less in one message.` } });
}

/** For the one who waits for this answer. */
export function inPlaceOf({ id }: LongLine): Line {
  const answer = { id, error: { code: INTERNAL, message: `The answer is not here. ${TOO_LONG}` } };
  return { ...messageOf(answer), raw: lineOf(answer) };
}

const TOO_LONG = "A message was longer than 128 MiB, so Holdfast did not pass it on.";

/** For the log. */
export function longLineWords(from: "agent" | "editor", { kind, method }: LongLine): string {
  const what = method ?? (kind === "response" ? "an answer" : "it does not say what it is");
  return `a message of the ${from} is longer than 128 MiB, and is not passed on (${what})`;
}

/** The session that it is about misses it. */
export function longLineError(): Error {
  return new Error("A message of the agent was longer than 128 MiB, so Holdfast did not pass it on.");
}

function beginningOf(parts: readonly Buffer[]): Buffer {
  const some: Buffer[] = [];
  let bytes = 0;
  for (const part of parts) {
    if (bytes >= START_BYTES) break;
    some.push(part.subarray(0, START_BYTES - bytes));
    bytes += some.at(-1)!.length;
  }
  return Buffer.concat(some);
}

function jsonIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // It is no JSON, so it is no message of the protocol either.
    return null;
  }
}

function wordIn(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
