export type Params = Readonly<Record<string, unknown>>;
export type RequestId = string | number | null;

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

/** The same message with another session's id, and nothing else changed. */
export function forSession(
  raw: Buffer,
  session: string,
  change: (params: Params) => Params = (params) => params,
): Buffer {
  const message = parsed(raw) ?? {};
  const params = change({ ...objectOf(message["params"]), sessionId: session });
  return Buffer.from(`${JSON.stringify({ ...message, params })}\n`);
}
