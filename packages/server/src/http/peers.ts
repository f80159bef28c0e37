import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { isHoldfastError } from "holdfast";
import type { Context } from "hono";
import { RequestError } from "../access/request-error.ts";
import { ProvenSender, plainAddress, UnprovenError } from "../proof/proven-agent.ts";
import { POSITION } from "../schemas/events.ts";
import type { Operation } from "../schemas/operation.ts";
import type { OperationId } from "../schemas/operations.ts";

/** Says that a server has passed the request on: the receiver answers it only if it has the session open. */
export const FORWARDED = "holdfast-forwarded";
/** Its value for a reader who may not see credentials. */
export const REDACTED = "redacted";
/** Of an answer, only what a client needs: the rest is this server's own. */
const PASSED_ON = ["content-type", POSITION, "idempotent-replayed", "retry-after", "x-accel-buffering"];
/** Of what only reads, that which is complete only on the server that has the session open. */
const BETTER_THERE: ReadonlySet<OperationId> = new Set([
  "followEvents",
  "getPermissions",
  "getQueue",
  "getRecording",
  "getSession",
]);

/**
 * The other servers on the same store. A request for a session that one of them has open is passed on to it, so it does
 * not matter which server a client reaches. The person who runs the servers names them, never a journal or a lease:
 * the token is sent to them, after they have proven that they have it.
 */
export class Peers {
  readonly #urls: readonly string[];
  readonly #sender: ProvenSender;
  readonly #warned = new Set<string>();

  constructor(urls: readonly string[], token: string) {
    this.#urls = urls.map(plainAddress);
    this.#sender = new ProvenSender(token);
  }

  /**
   * Whether to ask the others before this server answers. Whatever changes a session is asked for there: to stop a turn
   * that runs elsewhere, for example, would do nothing here, without an error.
   */
  goFirst(id: OperationId, { method }: Pick<Operation, "method">): boolean {
    return this.#urls.length > 0 && (method !== "get" || BETTER_THERE.has(id));
  }

  /** Whether the others may be able to do what this server could not. */
  canHelp(error: unknown): boolean {
    if (this.#urls.length === 0) return false;
    if (isHoldfastError(error, "SESSION_BUSY")) return error.facts["sameProcess"] !== true;
    return error instanceof RequestError && error.code === "RECORDER_UNKNOWN";
  }

  /** The answer of the server that has the session open; null if none of them has. The caller's access was checked. */
  async answer(c: Context, isRedacted: boolean, cut?: AbortSignal): Promise<Response | null> {
    const { pathname, search } = new URL(c.req.url);
    const { method } = c.req;
    const body = method === "POST" || method === "PATCH" ? await c.req.text() : undefined;
    const headers: Record<string, string> = { [FORWARDED]: isRedacted ? REDACTED : "1" };
    for (const name of ["content-type", "last-event-id", "accept"]) {
      const value = c.req.header(name);
      if (value !== undefined) headers[name] = value;
    }
    const signal = cut ? AbortSignal.any([cut, c.req.raw.signal]) : c.req.raw.signal;
    for (const url of this.#urls) {
      const sent = { method, headers, signal, ...(body === undefined ? {} : { body }) };
      const answer = await this.#sender.send(`${url}${pathname}${search}`, sent).catch((error: unknown) => {
        // That server is gone or unreachable, and its sessions are free or soon will be; or it is another one.
        if (signal.aborted || !(error instanceof Error)) throw error;
        if (error instanceof UnprovenError) this.#warn(url);
        return null;
      });
      if (answer && answer.statusCode !== MISDIRECTED) return passedOn(answer);
      answer?.resume();
    }
    return null;
  }

  /** Otherwise its sessions would only seem to be in use. */
  #warn(url: string): void {
    if (this.#warned.has(url)) return;
    this.#warned.add(url);
    const { host } = new URL(url);
    process.emitWarning(
      `The peer at ${url} did not prove that it knows the token, so nothing was sent to it. If it is yours, start it with --allow-host ${host}, and with the same token.`,
    );
  }
}

const MISDIRECTED = 421;

function passedOn(answer: IncomingMessage): Response {
  const headers = new Headers({ "cache-control": "no-store" });
  for (const name of PASSED_ON) {
    const value = answer.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  const status = answer.statusCode!;
  if (status !== 204) return new Response(Readable.toWeb(answer) as ReadableStream, { status, headers });
  answer.resume();
  return new Response(null, { status, headers });
}
