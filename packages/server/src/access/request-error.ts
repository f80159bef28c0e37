/** A refused request. The message says what happened, whether data is safe, and what to do next. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly code: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(status: number, code: ServerCode, message: string, facts: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.facts = facts;
  }
}

/** The codes of the server itself, with their status. docs/ERRORS.md has an entry for each. */
export const serverCodes = {
  ALREADY_ANSWERED: 409,
  BODY_TOO_LARGE: 413,
  BODY_NOT_JSON: 415,
  EPOCH_UNKNOWN: 404,
  HEADERS_TOO_LARGE: 431,
  HOST_REFUSED: 421,
  METHOD_REFUSED: 405,
  NO_SUCH_PATH: 404,
  ORIGIN_REFUSED: 403,
  RECORDER_BUSY: 409,
  RECORDER_UNKNOWN: 409,
  REQUEST_INVALID: 400,
  REQUEST_TOO_SLOW: 408,
  SERVER_STOPPING: 503,
  SESSION_ELSEWHERE: 421,
  SHARE_UNKNOWN: 404,
  TOKEN_MISSING: 401,
  TOKEN_READ_ONLY: 403,
  TOO_MANY_STREAMS: 503,
} as const;

export type ServerCode = keyof typeof serverCodes;

export function refuse(code: ServerCode, message: string, facts?: Readonly<Record<string, unknown>>): RequestError {
  return new RequestError(serverCodes[code], code, message, facts);
}
