import { setTimeout as sleep } from "node:timers/promises";
import { wordsOf } from "../../admit/admit.ts";
import { defined } from "../../defined.ts";
import { errorKind, HoldfastError, isHoldfastError } from "../../errors.ts";
import { jitter } from "../../jitter.ts";
import type { DueQuery, JournalStore, Listed } from "../../journal/contract.ts";
import { checkQuery } from "../../listing/query.ts";
import { AGE_MS_MAX, checkNumbers, count, duration, TIMER_MS_MAX } from "../../number-options.ts";
import { endedAs, HANDED_OVER } from "../../session-state.ts";
import type { Interruption } from "../../view/interruption.ts";
import type { LiveSession } from "../session.ts";
import type * as surface from "../surface.ts";
import { backoff, dueAt, dueInLists } from "./due.ts";
import type { ClaimOptions, ClaimResult, Finish, WorkOptions } from "./surface.ts";

const DAY_MS = 24 * 3600 * 1000;
const MAX_TRIES = 5;
const BACKOFF_MS = 2000;
const BACKOFF_MAX_MS = 10 * 60_000;
/** With a hundred idle workers, ten of them look each second. */
const POLL_MS = 10_000;
/** How many sessions one look returns: workers that meet at the first of them spread over the others. */
const LOOK = 32;
/** Workers that wait for the same session do not wake at the same instant. */
const SPREAD_MS = 500;

const CLAIM_NUMBERS = {
  olderThanMs: duration(AGE_MS_MAX),
  youngerThanMs: { ...duration(AGE_MS_MAX), endless: true },
  maxTries: count(1),
  backoffMs: duration(AGE_MS_MAX),
  backoffMaxMs: duration(AGE_MS_MAX),
  withinMs: duration(TIMER_MS_MAX),
} as const;
const WORK_NUMBERS = {
  concurrency: { ...count(1), endless: true },
  // It is varied by half.
  pollMs: duration(Math.floor(TIMER_MS_MAX / 1.5)),
} as const;

export interface WorkerParts {
  readonly journals: JournalStore;
  readonly resume: <M>(id: string, options: surface.OpenOptions<M>) => Promise<LiveSession<M>>;
  readonly isLive: (id: string) => boolean;
  /** The disk's. */
  readonly realPath: (path: string) => string;
  readonly onPassedOver: (id: string, error: HoldfastError) => void;
}

/** A session that this worker leaves alone for a while. */
interface LeftAlone {
  /** How often there was nothing that it could do. */
  readonly times: number;
  readonly untilMs: number;
  /** Also when it looks for turns that were ended on purpose. */
  readonly ended: boolean;
}

/** A session whose turn this worker tries to finish. */
interface Claimed<M> {
  readonly session: LiveSession<M>;
  readonly tries: number;
}

/** When the next session is due; null if that is not known. */
interface Nothing {
  readonly nextMs: number | null;
}

type NextClaim<M> = { readonly claimed: Claimed<M> } | { readonly result: ClaimResult } | Nothing;

/**
 * Finishes turns that nobody works on. Who gets a session is decided by its lease and fence. How often it was tried,
 * and when it may be tried again, is in its journal.
 */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #leftAlone = new Map<string, LeftAlone>();

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  async claimNext<M>(options: ClaimOptions<M>, finish: Finish<M>): Promise<ClaimResult | null> {
    checkNumbers("claimNext", options, CLAIM_NUMBERS);
    const found = await this.#claim(options);
    if ("claimed" in found) return this.#finish(found.claimed, options, finish);
    return "result" in found ? found.result : null;
  }

  async work<M>(options: WorkOptions<M>, finish: Finish<M>): Promise<void> {
    checkNumbers("work", options, { ...CLAIM_NUMBERS, ...WORK_NUMBERS });
    const { signal, concurrency = 1, pollMs = POLL_MS, onResult, onError } = options;
    const running = new Set<Promise<void>>();
    let fault: { readonly error: unknown } | null = null;
    // What the store could not do just now does not end the worker. Anything else is a fault of the program.
    const tolerate = (error: unknown): null => {
      if (errorKind(error) !== "store" || isHoldfastError(error, "STORE_CLOSED")) fault ??= { error };
      else onError?.(error);
      return null;
    };
    const report = async (result: ClaimResult | Promise<ClaimResult>): Promise<void> => onResult?.(await result);
    while (!signal.aborted && !fault) {
      if (running.size >= concurrency) {
        await Promise.race(running);
        continue;
      }
      const found = await this.#claim(options).catch(tolerate);
      if (!found || "nextMs" in found) {
        const dueMs = (found?.nextMs ?? Number.POSITIVE_INFINITY) - Date.now() + SPREAD_MS * Math.random();
        if (!fault) await pause(Math.max(0, Math.min(jitter(pollMs), dueMs)), signal);
        continue;
      }
      const result = "claimed" in found ? this.#finish(found.claimed, options, finish) : found.result;
      const run: Promise<void> = report(result)
        .catch(tolerate)
        .then(() => void running.delete(run));
      running.add(run);
    }
    await Promise.all(running);
    if (fault) throw (fault as { readonly error: unknown }).error;
  }

  /** When the next session is due, in milliseconds since 1970: not after now if one is due; null if none is known. */
  async nextDue<M>(options: ClaimOptions<M>): Promise<number | null> {
    checkNumbers("nextDue", options, CLAIM_NUMBERS);
    const query = this.#query(options, []);
    const { sessions, nextMs } = await this.#due(query);
    for (const listed of sessions) if (await this.#isFree(listed)) return query.nowMs;
    return nextMs;
  }

  /** As far as can be told without opening it, which reports errors. */
  async #isFree({ id, closed, holder }: Listed): Promise<boolean> {
    const { isLive, journals } = this.#parts;
    if (isLive(id)) return false;
    if (closed || holder !== undefined) return closed || holder === null;
    return (await journals.holder(id).catch(() => null)) === null;
  }

  #query<M>(options: ClaimOptions<M>, seen: readonly string[]): DueQuery {
    const { cwd, app, labels, ended = false } = options;
    const { olderThanMs = 0, youngerThanMs = DAY_MS, backoffMs = BACKOFF_MS, backoffMaxMs = BACKOFF_MAX_MS } = options;
    const { where, hints } = checkQuery(defined({ cwd, app, labels }), this.#parts.realPath);
    const nowMs = Date.now();
    const skip = [...seen];
    for (const [id, { untilMs, ended: forAll }] of this.#leftAlone)
      if (untilMs > nowMs && (forAll || !ended)) skip.push(id);
    return {
      // Their parent's turn resumes them.
      where: { ...where, parentSession: null },
      hints: { ...hints, noneOf: { state: ["idle"] } },
      ...{ limit: LOOK, skip, nowMs, ended, olderThanMs, youngerThanMs, backoffMs, backoffMaxMs },
    };
  }

  /** The sessions that are due, the longest due first, and when the next one is. */
  async #due(query: DueQuery): Promise<{ readonly sessions: readonly Listed[]; readonly nextMs: number | null }> {
    const { journals } = this.#parts;
    const found = (await journals.due?.(query)) ?? (await dueInLists(journals, query));
    const sessions: Listed[] = [];
    let nextMs: number | null = null;
    for (const listed of found) {
      const dueMs = dueAt(listed, query);
      if (dueMs === null) continue;
      if (dueMs > query.nowMs) nextMs = Math.min(nextMs ?? dueMs, dueMs);
      else if (sessions.length < query.limit) sessions.push(listed);
    }
    return { sessions, nextMs };
  }

  /** The session that is due longest, open for writing, with the record that a try begins. */
  async #claim<M>(options: ClaimOptions<M>): Promise<NextClaim<M>> {
    const seen: string[] = [];
    for (;;) {
      if (options.signal?.aborted) return { nextMs: null };
      const query = this.#query(options, seen);
      const { sessions, nextMs } = await this.#due(query);
      if (sessions.length === 0) return { nextMs };
      const rest = [...sessions];
      while (rest.length > 0 && !options.signal?.aborted) {
        // Others have got the one that is due longest: they are at the next ones by now.
        const at = rest.length === sessions.length ? 0 : Math.floor(Math.random() * rest.length);
        const [listed] = rest.splice(at, 1) as [Listed];
        const { id } = listed;
        seen.push(id);
        if (!(await this.#isFree(listed))) continue;
        const found = await this.#open<M>(id, options, query);
        if (found) return found;
      }
    }
  }

  /** Null: there is nothing to do in it now. */
  async #open<M>(
    id: string,
    options: ClaimOptions<M>,
    query: DueQuery,
  ): Promise<Exclude<NextClaim<M>, Nothing> | null> {
    let session: LiveSession<M>;
    try {
      session = await this.#parts.resume<M>(id, options.open ?? {});
    } catch (error) {
      this.#passOver(id, error, options, query);
      return null;
    }
    try {
      const { interruption } = session;
      // Somebody may have been here since its row was written.
      if (!interruption || !isDue(session, query)) {
        this.#leaveAlone(id, query, isDue(session, { ...query, ended: true }));
        await session.close();
        return null;
      }
      this.#leftAlone.delete(id);
      const { maxTries = MAX_TRIES } = options;
      const { attempts } = interruption;
      if (attempts < maxTries) {
        const { app, host, pid } = session.holder;
        return { claimed: { session, tries: await session.claimTurn(`${app}@${host}:${pid}`) } };
      }
      const error = new Error("each process that tried it died");
      await session.suspendTurn({ reason: error.message, parked: attempts });
      await session.close();
      return { result: { session: id, tries: attempts, outcome: "gave-up", error } };
    } catch (error) {
      await session.close().catch(() => {});
      throw error;
    }
  }

  /** One session that cannot be opened does not stop the others. Throws what is wrong with the whole store. */
  #passOver<M>(id: string, error: unknown, options: ClaimOptions<M>, query: DueQuery): void {
    if (isHoldfastError(error, "SESSION_BUSY", "SESSION_NOT_FOUND")) return;
    if (errorKind(error) === "store" && !isHoldfastError(error, "STORE_IO", "STORE_FORBIDDEN")) throw error;
    this.#leaveAlone(id, query, false);
    const words = `Session ${id} could not be opened: ${wordsOf(error)}`;
    const told = isHoldfastError(error) ? error : new HoldfastError("JOURNAL_UNREADABLE", words, {}, error);
    (options.onPassedOver ?? this.#parts.onPassedOver)(id, told);
  }

  /** `isForEnded`: who looks for turns that were ended on purpose wants it. */
  #leaveAlone(id: string, query: DueQuery, isForEnded: boolean): void {
    const times = (this.#leftAlone.get(id)?.times ?? 0) + 1;
    this.#leftAlone.set(id, { times, untilMs: Date.now() + backoff(times, query), ended: !isForEnded });
  }

  async #finish<M>(claimed: Claimed<M>, options: ClaimOptions<M>, finish: Finish<M>): Promise<ClaimResult> {
    const { session, tries } = claimed;
    const { signal = new AbortController().signal } = options;
    const before = session.interruption;
    const isUntouched = (): boolean => {
      const { turn, interruption: now } = session;
      // A suspension that it recorded sets the tries to 0, and any other end of the turn says how.
      const isSame = now?.attempts === tries && now.resumes === before?.resumes && now.how.kind === before.how.kind;
      return turn === null && isSame;
    };
    let failure: { readonly error: unknown } | null = null;
    let handingOver: Promise<void> | null = null;
    const stopped = Promise.withResolvers<void>();
    const stop = (): void => {
      handingOver = handOver(claimed, isUntouched, options.withinMs);
      handingOver.then(stopped.resolve, stopped.reject);
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      const run = (async () => finish(session, { tries, signal }))();
      run.catch(() => {}); // Once the session is handed over, nobody waits for it.
      await Promise.race([run, stopped.promise]);
    } catch (error) {
      failure = { error };
    }
    signal.removeEventListener("abort", stop);
    stopped.promise.catch(() => {});
    await (handingOver as Promise<void> | null)?.catch((error: unknown) => {
      failure ??= { error };
    });
    if (!failure && !signal.aborted && (session.turn || isUntouched()))
      failure = { error: new Error("the function returned before the turn was over") };
    const { state } = session;
    const isOver =
      !isUntouched() && (state === "idle" || state === "waiting" || state === "stopped" || state === "paused");
    const isFailed = failure !== null && !signal.aborted && !isOver;
    // With progress in this try, the count begins again.
    const counted = isFailed && session.attempts === 0 ? 1 : tries;
    const failed = isFailed ? await this.#retryLater(session, counted, failure!.error, options) : null;
    await session.close().catch((error: unknown) => {
      failure ??= { error };
    });
    return { session: session.id, tries: counted, outcome: failed ?? outcomeOf(session), ...failure };
  }

  /** The try failed: records when there is another one, or that there is none. */
  async #retryLater<M>(
    session: LiveSession<M>,
    tries: number,
    error: unknown,
    options: ClaimOptions<M>,
  ): Promise<ClaimResult["outcome"]> {
    const isOfStore = errorKind(error) === "store";
    const { maxTries = MAX_TRIES } = options;
    const reason = wordsOf(error);
    const until = Date.now() + backoff(isOfStore ? 1 : tries, this.#query(options, []));
    const isLast = !isOfStore && tries >= maxTries;
    const why = isLast ? { reason, parked: tries } : { reason, until, ...attemptsOf(isOfStore ? tries - 1 : tries) };
    try {
      await session.suspendTurn(why).catch(async (error: unknown) => {
        if (!isHoldfastError(error, "SESSION_CLOSED") || session.interruption?.how.kind === "handed-over") throw error;
        // The function has closed the session.
        const again = await this.#parts.resume<M>(session.id, options.open ?? {});
        await again.suspendTurn(why).finally(() => again.close());
      });
    } catch {
      // A store that fails says so at the next look. Until then the claim counts, as if the process had died.
      return "given-back";
    }
    return isOfStore ? "given-back" : isLast ? "gave-up" : "failed";
  }
}

function isDue<M>(
  { state, interruption }: Pick<LiveSession<M>, "state" | "interruption">,
  { ended, nowMs }: Pick<DueQuery, "ended" | "nowMs">,
): boolean {
  if (state === "paused")
    return Date.parse(untilOf(interruption!.how) ?? "") <= nowMs || interruption!.how.kind === "handed-over";
  return state === "interrupted" || (ended && (state === "stopped" || state === "failed"));
}

function untilOf(how: Interruption<unknown>["how"]): string | undefined {
  return how.kind === "suspended" ? how.until : undefined;
}

/** The work is to end: the next worker continues the turn, and this try does not count. */
async function handOver<M>(
  { session, tries }: Claimed<M>,
  isUntouched: () => boolean,
  withinMs: number | undefined,
): Promise<void> {
  try {
    const again = { reason: HANDED_OVER, until: Date.now(), ...attemptsOf(tries - 1) };
    if (isUntouched()) await session.suspendTurn(again);
  } finally {
    await session.close({ handOver: true, ...defined({ withinMs }) });
  }
}

function attemptsOf(attempts: number): { readonly attempts?: number } {
  return attempts > 0 ? { attempts } : {};
}

function outcomeOf<M>({ interruption }: LiveSession<M>): ClaimResult["outcome"] {
  const how = interruption?.how;
  if (!how) return "finished";
  if (how.kind === "suspended") return how.until === undefined ? "waiting" : "paused";
  return how.kind === "aborted" && endedAs("aborted", how.by) === "stopped"
    ? "ended"
    : how.kind === "failed"
      ? "ended"
      : "given-back";
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
