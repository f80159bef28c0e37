export type Params = Readonly<Record<string, unknown>>;
export type RequestId = string | number | null;

/** JSON-RPC's code for an error inside the other side. */
export const INTERNAL = -32603;

/** A line of the protocol, as it came, and what it says. */
export type Message =
  | {
      readonly kind: "request";
      readonly raw: Buffer;
      readonly id: RequestId;
      readonly method: string;
      readonly params: Params;
    }
  | { readonly kind: "notification"; readonly raw: Buffer; readonly method: string; readonly params: Params }
  | {
      readonly kind: "response";
      readonly raw: Buffer;
      readonly id: RequestId;
      readonly result: unknown;
      /** Undefined if it succeeded. */
      readonly error: unknown;
    }
  /** Not a message of the protocol: an empty line, a log line on the wrong stream. */
  | { readonly kind: "other"; readonly raw: Buffer };

export function messageIn(raw: Buffer): Message {
  const json = parsed(raw);
  if (json === null) return { kind: "other", raw };
  const { id, method } = json;
  const params = objectOf(json["params"]) ?? {};
  const isId = typeof id === "string" || typeof id === "number" || id === null;
  if (typeof method === "string")
    return isId ? { kind: "request", raw, id, method, params } : { kind: "notification", raw, method, params };
  return isId ? { kind: "response", raw, id, result: json["result"], error: json["error"] } : { kind: "other", raw };
}

function parsed(raw: Buffer): Params | null {
  try {
    return objectOf(JSON.parse(raw.toString("utf8")));
  } catch {
    return null;
  }
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

/** The same message with these changes; the same bytes if there are none. */
export function changed(raw: Buffer, { id, session, params: change }: Change): Buffer {
  if (id === undefined && session === undefined && !change) return raw;
  const message = parsed(raw) ?? {};
  const given = objectOf(message["params"]);
  const moved = session === undefined ? given : { ...given, sessionId: session };
  const params = change ? change(moved ?? {}) : moved;
  return Buffer.from(
    `${JSON.stringify({ ...message, ...(id === undefined ? {} : { id }), ...(params ? { params } : {}) })}\n`,
  );
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
