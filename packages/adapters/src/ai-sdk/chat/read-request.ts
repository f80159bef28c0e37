import { invalid, notFound, Refusal } from "./problem.ts";

const CHAT_ID_CHARS_MAX = 200;

/** What a path names. `chat` is null where the body names it. */
export interface Route {
  readonly chat: string | null;
  readonly isStream: boolean;
}

/**
 * `<path>`, `<path>/<chat>` or `<path>/<chat>/stream`. A base path of the framework or of a proxy may precede it. Only
 * the first place where `path` stands counts: whatever else reads this address reads it that way. Throws a refusal for
 * anything else.
 */
export function routeOf(url: string, path: string): Route {
  const segments = segmentsOf(url);
  const base = segmentsOf(path.startsWith("/") ? path : `/${path}`);
  const at = segments.findIndex((_, start) => base.every((segment, n) => segments[start + n] === segment));
  const [chat, stream, ...rest] = segments.slice(Math.max(at, 0) + base.length);
  if ((at < 0 && base.length > 0) || rest.length > 0 || (stream !== undefined && stream !== "stream"))
    throw new Refusal(404, "NOT_FOUND", `No chat has this address. The handlers expect them at /${base.join("/")}.`);
  return { chat: chat === undefined ? null : chatId(decoded(chat)), isStream: stream !== undefined };
}

/** Of an address or a path, both as an address spells them. */
function segmentsOf(address: string): string[] {
  const { pathname } = new URL(address, "http://localhost");
  return pathname.split("/").filter((segment) => segment !== "");
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound();
  }
}

/** Throws a refusal. */
export function chatId(given: unknown): string {
  if (typeof given !== "string" || given === "" || given.length > CHAT_ID_CHARS_MAX || !given.isWellFormed())
    throw invalid(`a chat needs an id of 1 to ${CHAT_ID_CHARS_MAX} characters`);
  return given;
}

/**
 * The body of a POST. It must be declared as JSON: browsers let any other site send forms and plain text in a user's
 * name, but not JSON.
 */
export async function bodyOf(request: Request, bytesMax: number): Promise<Readonly<Record<string, unknown>>> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type))
    throw new Refusal(415, "NOT_JSON", "Send the message as application/json. Nothing was recorded.");
  const text = await textOf(request, bytesMax);
  try {
    const body = JSON.parse(text) as unknown;
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw invalid("its body is not a JSON object");
}

async function textOf(request: Request, bytesMax: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > bytesMax)
      throw new Refusal(413, "TOO_LARGE", `A message has at most ${bytesMax} bytes. Nothing was recorded.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
