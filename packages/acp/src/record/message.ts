export type Params = Readonly<Record<string, unknown>>;
export type RequestId = string | number | null;

/** JSON-RPC's code for an error inside the other side. */
export const INTERNAL = -32603;
/** The protocol's code for a session that does not exist. */
export const NOT_FOUND = -32002;

/** A message of the protocol, parsed, with nothing removed: `value` is all of it. */
export type Message =
  | {
      readonly kind: "request";
      readonly value: Params;
      readonly id: RequestId;
      readonly method: string;
      readonly params: Params;
    }
  | { readonly kind: "notification"; readonly value: Params; readonly method: string; readonly params: Params }
  | {
      readonly kind: "response";
      readonly value: Params;
      readonly id: RequestId;
      readonly result: unknown;
      /** Undefined if it succeeded. */
      readonly error: unknown;
    }
  /** Not a message of the protocol. It is passed on, and the receiver says what it thinks of it. */
  | { readonly kind: "other"; readonly value: unknown };

/** A message with the bytes that it came as. `other` is also an empty line, or a log line on the wrong stream. */
export type Line = Message & { readonly raw: Buffer };

export function messageOf(value: unknown): Message {
  const json = objectOf(value);
  if (json === null) return { kind: "other", value };
  const { id, method } = json;
  const params = objectOf(json["params"]) ?? {};
  const isId = typeof id === "string" || typeof id === "number" || id === null;
  if (typeof method === "string")
    return isId
      ? { kind: "request", value: json, id, method, params }
      : { kind: "notification", value: json, method, params };
  return isId
    ? { kind: "response", value: json, id, result: json["result"], error: json["error"] }
    : { kind: "other", value };
}

export function objectOf(value: unknown): Params | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Params) : null;
}

export function stringOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** A message of our own, or one that had to change. */
export function lineOf(message: Params): Buffer {
  return Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

export function updateLine(sessionId: string, update: Params): Buffer {
  return lineOf({ method: "session/update", params: { sessionId, update } });
}

/** What has to change in a message on its way. */
export interface Change {
  readonly id?: RequestId;
  readonly session?: string;
  readonly params?: (params: Params) => Params;
}

/** The same message with these changes; the same value if there are none. */
export function changed(value: Params, { id, session, params: change }: Change): Params {
  const given = objectOf(value["params"]);
  const isMoved = session !== undefined && session !== given?.["sessionId"];
  if (id === undefined && !isMoved && !change) return value;
  const moved = isMoved ? { ...given, sessionId: session } : given;
  const params = change ? change(moved ?? {}) : moved;
  return { ...value, ...(id === undefined ? {} : { id }), ...(params ? { params } : {}) };
}

/** The same for a line: the same bytes if there are no changes. */
export function changedLine({ value, raw }: Exclude<Line, { kind: "other" }>, change: Change): Buffer {
  const after = changed(value, change);
  return after === value ? raw : Buffer.from(`${JSON.stringify(after)}\n`);
}

/** Methods whose params may hold secrets. They are passed on and never recorded. */
const SECRET = /^_?(?:authenticate|logout|auth\/|providers\/|elicitation\/|session\/(?:new|load|resume|fork)$)/;

/** The params of a message without what may be secret; null if that is all of them. */
export function recordable(method: string, params: Params): Params | null {
  if (SECRET.test(method)) return null;
  const { env } = params;
  if (method !== "terminal/create" || !Array.isArray(env)) return params;
  // Which variables a command gets, without their values.
  return { ...params, env: env.map((one) => ({ name: stringOf(objectOf(one)?.["name"]) })) };
}
