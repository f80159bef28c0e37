/**
 * Prompts that make the model fail, for tests and demonstrations: "fail: 500", "fail: cut after 3 words", "hang". With
 * "…, then: <task>" it fails until the turn has been interrupted once, and does the task when resumed, so it is still a
 * function of the messages.
 */
export interface Failure {
  readonly kind: "status" | "cut" | "error" | "unreachable" | "hang" | "empty" | "refuse" | "malformed";
  /** The HTTP status. */
  readonly status: number;
  /** How many words to stream before failing. */
  readonly words: number;
}

export function failureIn(prompt: string): { readonly failure: Failure; readonly task: string } | null {
  const { said, task } = partsOf(prompt);
  const found = /^(?:fail\s*:([^,\n]+)|(hang(?:\s+after\s+\d+\s+words?)?))$/i.exec(said);
  if (!found) return null;
  const what = (found[1] ?? found[2]!).trim().toLowerCase();
  const kind = kindOf(what);
  if (!kind) return null;
  const words = Number(/after\s+(\d+)/.exec(what)?.[1] ?? (kind === "cut" || kind === "error" ? 3 : 0));
  const status = what === "window" ? 400 : Number(/^\d{3}$/.exec(what)?.[0] ?? 500);
  return { failure: { kind, status, words }, task };
}

/** The part before ", then:", without a full stop, and the part after it. */
function partsOf(prompt: string): { readonly said: string; readonly task: string } {
  const then = /(?<!\s)\s*,?(?<!\s)\s*\bthen\s*:/i.exec(prompt);
  const task = then ? prompt.slice(then.index + then[0].length).trim() : "";
  const before = then && task !== "" ? prompt.slice(0, then.index) : prompt;
  return { said: before.trim().replace(/(?<![.\s])[.\s]+$/, ""), task };
}

function kindOf(what: string): Failure["kind"] | null {
  if (/^[45]\d\d$|^window$/.test(what)) return "status";
  if (/^(cut|error|unreachable|hang|empty|refuse|malformed)\b/.test(what))
    return what.split(/\s/)[0] as Failure["kind"];
  return null;
}

const WINDOW_WORDS = "prompt is too long: the conversation exceeds the maximum context length of the offline model";

const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: WINDOW_WORDS,
  401: "invalid key (this failure was asked for)",
  403: "not allowed (this failure was asked for)",
  404: "no such model (this failure was asked for)",
  429: "rate limit reached (this failure was asked for)",
  503: "overloaded (this failure was asked for)",
};

/** The error that a provider's package would throw, so that retries and explanations work as with a real one. */
export async function statusError(status: number, words?: string): Promise<Error> {
  const { APICallError } = await import("ai");
  return new APICallError({
    message: words ?? STATUS_WORDS[status] ?? "the server failed (this failure was asked for)",
    url: "http://offline.invalid/",
    requestBodyValues: {},
    statusCode: status,
    isRetryable: status === 408 || status === 429 || status >= 500,
  });
}

export async function windowError(tokens: number, windowTokens: number): Promise<Error> {
  return statusError(400, `prompt is too long: ${tokens} tokens, and the context window holds ${windowTokens}`);
}

/** What a broken connection looks like in Node. */
export function brokenConnection(code: "UND_ERR_SOCKET" | "ECONNREFUSED"): Error {
  const cause = Object.assign(new Error("other side closed (this failure was asked for)"), { code });
  return new TypeError(code === "ECONNREFUSED" ? "fetch failed" : "terminated", { cause });
}
