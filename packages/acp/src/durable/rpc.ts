import { objectOf, type Params, type RequestId } from "../record/message.ts";

/** A message of the protocol as the SDK hands it over: parsed, with nothing removed. */
export type Rpc =
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
  /** Not a message: it is passed on, and the SDK says what it thinks of it. */
  | { readonly kind: "other"; readonly value: unknown };

export type Request = Extract<Rpc, { kind: "request" }>;
export type Response = Extract<Rpc, { kind: "response" }>;

export function rpcOf(value: unknown): Rpc {
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

/** The same message about the session with this id. */
export function about(value: Params, sessionId: string, more: Params = {}): Params {
  const params = objectOf(value["params"]) ?? {};
  return params["sessionId"] === sessionId && Object.keys(more).length === 0
    ? value
    : { ...value, params: { ...params, ...more, sessionId } };
}
