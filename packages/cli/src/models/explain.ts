import { withoutPasswords } from "../without-passwords.ts";

interface Shape {
  readonly [member: string]: unknown;
}

/** Error messages of providers for a conversation that is too long: they have no common code for it. */
const WINDOW =
  /context.?length|context.?window|context size|maximum context|tokens exceeds? the|prompt is too long|input is too long|too many (input )?tokens|exceeds? (the )?(maximum|max|limit).{0,40}token|token count.{0,60}exceeds|request too large/i;

const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_SOCKET",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

const SAFE = "Everything so far is recorded.";

/** The part of an explanation before it mentions the turn. */
export function whatHappened(explanation: string): string {
  return explanation.split(SAFE, 1)[0]!.trimEnd();
}

/** Whether the conversation exceeds the model's context window: compacting helps. */
export function isWindowError(error: unknown): boolean {
  return chain(error).some((one) => {
    const status = statusOf(one);
    if (status !== undefined && status !== 400 && status !== 413 && status !== 422) return false;
    return WINDOW.test(`${textOf(one["message"])} ${textOf(one["responseBody"])} ${textOf(one["code"])}`);
  });
}

/** Why a request to the model failed: a MODEL_… code, and what happened, whether data is safe and what to do next. */
export interface ExplainedError {
  readonly code: string;
  readonly message: string;
}

/**
 * Turns an error from the AI SDK into a code and a message that says what to do. `name` is the model's `provider/name`.
 */
export function explainModelError(error: unknown, name: string): ExplainedError {
  const links = chain(error);
  if (isWindowError(error)) {
    return shown(
      "MODEL_WINDOW",
      `The conversation is longer than the context window of ${name}. ${SAFE} Compact it (/compact in holdfast chat), or use a model with a larger window.`,
    );
  }
  const status = links.map(statusOf).find((one) => one !== undefined);
  if (status !== undefined) return ofStatus(status, name, links);
  if (links.some(({ name: kind }) => kind === "AI_LoadAPIKeyError")) return noKey(name, links);
  if (links.some(({ name: kind }) => kind === "AI_NoSuchModelError")) return unknownModel(name, links);
  const network = links.map(networkCode).find((code) => code !== undefined);
  if (network !== undefined) {
    return shown(
      "MODEL_UNREACHABLE",
      `The server of ${name} does not respond (${network}${addressOf(links)}). ${SAFE} Check the address and the network, then finish the turn.`,
    );
  }
  if (links.some(({ name: kind }) => kind === "TimeoutError" || kind === "AI_TimeoutError")) {
    return shown(
      "MODEL_UNREACHABLE",
      `The server of ${name} took too long to answer. ${SAFE} Finish the turn to retry.`,
    );
  }
  if (
    links.some((one) => /content.?filter|refus(ed|al)|safety/i.test(`${textOf(one["name"])} ${textOf(one["message"])}`))
  ) {
    return explainRefusal(name, links);
  }
  if (links.some(({ name: kind }) => kind === "AI_NoOutputGeneratedError" || kind === "AI_NoContentGeneratedError")) {
    return shown("MODEL_FAILED", `${name} returned an empty answer. ${SAFE} Finish the turn to retry.`);
  }
  return shown("MODEL_FAILED", `${name} failed${said(links)}. ${SAFE} Finish the turn to retry.`);
}

function ofStatus(status: number, name: string, links: readonly Shape[]): ExplainedError {
  if (status === 401 || status === 403) return noKey(name, links);
  if (status === 404) return unknownModel(name, links);
  if (status === 408 || status === 504) {
    return shown(
      "MODEL_UNREACHABLE",
      `The server of ${name} took too long to answer (${status}). ${SAFE} Finish the turn to retry.`,
    );
  }
  if (status === 429 || status === 529 || status === 503) {
    const wait = waitOf(links);
    return shown(
      "MODEL_BUSY",
      `${name} is rejecting requests for now (${status}${said(links)}). ${SAFE} Finish the turn ${wait ?? "later"}.`,
    );
  }
  if (status >= 500) {
    return shown(
      "MODEL_FAILED",
      `The server of ${name} failed (${status}${said(links)}). ${SAFE} Finish the turn to retry.`,
    );
  }
  return explainRefusal(name, links, status);
}

function noKey(name: string, links: readonly Shape[]): ExplainedError {
  return shown(
    "MODEL_KEY",
    `The key for ${name} is missing or was rejected${said(links)}. ${SAFE} Set a valid key and finish the turn, or try --model offline, which needs none.`,
  );
}

function unknownModel(name: string, links: readonly Shape[]): ExplainedError {
  return shown(
    "MODEL_UNKNOWN",
    `There is no model ${name} at ${addressOf(links).replace(/^ at /, "") || "that address"}${said(links)}. ${SAFE} Check its name and the base URL, or finish the turn with another --model.`,
  );
}

function explainRefusal(name: string, links: readonly Shape[], status?: number): ExplainedError {
  const number = status === undefined ? "" : ` (${status})`;
  return shown(
    "MODEL_REFUSED",
    `${name} refused the request${number}${said(links)}. ${SAFE} Change the prompt or use another model.`,
  );
}

function shown(code: string, message: string): ExplainedError {
  return { code, message };
}

/** The error, what it wraps, and so on: retries, causes, aggregates. */
function chain(error: unknown): Shape[] {
  const links: Shape[] = [];
  const waiting: unknown[] = [error];
  while (waiting.length > 0 && links.length < 20) {
    const next = waiting.shift();
    if (typeof next === "string") links.push({ message: next });
    if (typeof next !== "object" || next === null || links.includes(next as Shape)) continue;
    const link = next as Shape;
    links.push(link);
    // The error part of some providers' streams is an object with the real error inside.
    waiting.push(link["lastError"], link["cause"], link["error"]);
    if (Array.isArray(link["errors"])) waiting.push(...link["errors"]);
  }
  return links;
}

function statusOf(link: Shape): number | undefined {
  for (const member of ["statusCode", "status"]) {
    const value = link[member];
    if (typeof value === "number" && value >= 400 && value < 600) return value;
  }
  // Errors in mid-stream have a type instead of a status.
  switch (link["type"]) {
    case "overloaded_error":
      return 529;
    case "rate_limit_error":
      return 429;
    case "authentication_error":
      return 401;
    case "not_found_error":
      return 404;
    case "api_error":
      return 500;
    default:
      return undefined;
  }
}

function networkCode(link: Shape): string | undefined {
  const code = textOf(link["code"]);
  if (UNREACHABLE.has(code)) return code;
  const message = textOf(link["message"]);
  if (/^(terminated|other side closed|fetch failed|failed to fetch|bad port)$/i.test(message))
    return "the connection broke";
  return undefined;
}

function addressOf(links: readonly Shape[]): string {
  for (const link of links) {
    const url = URL.parse(textOf(link["url"]));
    if (url?.host) return ` at ${url.host}`;
  }
  return "";
}

function waitOf(links: readonly Shape[]): string | undefined {
  for (const link of links) {
    const headers = link["responseHeaders"] as Shape | undefined;
    const seconds = Number(headers?.["retry-after"]);
    if (Number.isFinite(seconds) && seconds > 0) return `in ${Math.ceil(seconds)} seconds`;
  }
  return undefined;
}

/** What the server said, short and on one line: never a whole HTML page, never a key. */
function said(links: readonly Shape[]): string {
  const own = links.find((link) => statusOf(link) !== undefined) ?? links.at(-1);
  const text = withoutPasswords(textOf(own?.["message"]))
    .replace(/\b(sk|key|AIza)[-_A-Za-z0-9]{8,}/g, "[key]")
    .replace(/\s+/g, " ")
    .trim();
  if (text === "" || text.startsWith("<")) return "";
  return `: ${text.length > 160 ? `${text.slice(0, 160)}…` : text.replace(/\.$/, "")}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
