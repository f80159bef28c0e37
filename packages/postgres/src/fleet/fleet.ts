import { setTimeout as sleep } from "node:timers/promises";
import { errorKind, type Interruption, isHoldfastError, type OpenOptions, type Session, type Store } from "holdfast";
import { jitter } from "holdfast/internal";
import type { CounterName, Metrics } from "../connection/metrics.ts";
import { AGE_MS_MAX, checkNumbers, count, duration, TIMER_MS_MAX } from "../options.ts";
import type { ClaimFilter, ClaimRules, Claims, Reserved } from "./claims.ts";

const MAX_TRIES = 5;
const BACKOFF_MS = 2000;
const BACKOFF_MAX_MS = 10 * 60_000;
/** With a hundred idle workers, that is ten statements a second; one of them looks every tenth of a second. */
const POLL_MS = 10_000;
/** A session that turns out to be in use is left alone for this long. */
const BUSY_MS = 1000;

const CLAIM_NUMBERS = {
  olderThanMs: duration(AGE_MS_MAX),
  youngerThanMs: { ...duration(AGE_MS_MAX), endless: true },
  maxTries: count(1),
  backoffMs: duration(AGE_MS_MAX),
  backoffMaxMs: duration(AGE_MS_MAX),
} as const;
const WORK_NUMBERS = {
  concurrency: { ...count(1), endless: true },
  // It is varied by half.
  pollMs: duration(Math.floor(TIMER_MS_MAX / 1.5)),
} as const;

/** Which sessions to claim, and how often to try. */
export interface ClaimOptions<M = unknown> extends ClaimFilter {
  /** How often a turn is tried before the fleet gives up on it. Default: 5. */
  readonly maxTries?: number;
  /** The pause after the first failed try; it doubles with each. Default: 2 seconds. */
  readonly backoffMs?: number;
  /** The longest pause. Default: 10 minutes. */
  readonly backoffMaxMs?: number;
  /** For `store.resume`. */
  readonly open?: OpenOptions<M>;
  /** Ends the work. A try that it interrupts does not count. */
  readonly signal?: AbortSignal;
}

export interface WorkOptions<M = unknown> extends ClaimOptions<M> {
  readonly signal: AbortSignal;
  /** How many sessions to work on at once. Default: 1. */
  readonly concurrency?: number;
  /** How long to wait before looking again if nothing was found; varied by half. Default: 10 seconds. */
  readonly pollMs?: number;
  readonly onResult?: (result: ClaimResult) => void;
  /** The server was away while looking for work. The worker continues. */
  readonly onError?: (error: unknown) => void;
}

/** What the function that finishes a turn gets besides the session. */
export interface Claim {
  /** How often this turn has been claimed, this time included. */
  readonly tries: number;
  /** Fires when the work should end. */
  readonly signal: AbortSignal;
}

export type Finish<M> = (session: Session<M>, claim: Claim) => unknown;

export interface ClaimResult {
  readonly session: string;
  readonly tries: number;
  /**
   * `finished`: the turn completed. `waiting`: it waits for a person. `ended`: the function ended it as failed or
   * aborted. `failed`: the function threw or returned too early; it will be tried again. `gave-up`: the same, for the
   * last time. `given-back`: the work was stopped, or the store failed; this try does not count.
   */
  readonly outcome: "finished" | "waiting" | "ended" | "failed" | "gave-up" | "given-back";
  readonly error?: unknown;
}

interface ClaimedSession<M> {
  readonly session: Session<M>;
  readonly reserved: Reserved;
}

export const OUTCOME_COUNTERS: Readonly<Record<ClaimResult["outcome"], CounterName>> = {
  finished: "claimsFinished",
  waiting: "claimsFinished",
  ended: "claimsFinished",
  failed: "claimsFailed",
  "gave-up": "claimsGivenUp",
  "given-back": "claimsGivenBack",
};

/** Workers that finish each other's turns. */
export class Fleet {
  readonly #store: Store;
  readonly #claims: Claims;
  readonly #metrics: Metrics;
  /** Brings the rows of sessions whose worker died up to date. */
  readonly #settle: () => Promise<void>;

  constructor(store: Store, claims: Claims, metrics: Metrics, settle: () => Promise<void>) {
    this.#store = store;
    this.#claims = claims;
    this.#metrics = metrics;
    this.#settle = settle;
  }

  async claimNext<M>(options: ClaimOptions<M>, finish: Finish<M>): Promise<ClaimResult | null> {
    checkNumbers("claimNext", options, CLAIM_NUMBERS);
    const opened = await this.#open(options);
    return opened && this.#finish(opened, options, finish);
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
    while (!signal.aborted && !fault) {
      if (running.size >= concurrency) {
        await Promise.race(running);
        continue;
      }
      const opened = await this.#open(options).catch(tolerate);
      if (!opened) {
        if (!fault) await pause(jitter(pollMs), signal);
        continue;
      }
      const run: Promise<void> = this.#finish(opened, options, finish)
        .then((result) => onResult?.(result))
        .catch(tolerate)
        .then(() => void running.delete(run));
      running.add(run);
    }
    await Promise.all(running);
    if (fault) throw (fault as { readonly error: unknown }).error;
  }

  /** The next session that is due, open for writing. Null: nothing is due. */
  async #open<M>(options: ClaimOptions<M>): Promise<ClaimedSession<M> | null> {
    const rules = rulesOf(options);
    while (!options.signal?.aborted) {
      await this.#settle();
      const reserved = await this.#claims.reserve(options, rules);
      if (!reserved) return null;
      let session: Session<M>;
      try {
        session = await this.#store.resume<M>(reserved.id, options.open);
      } catch (error) {
        await this.#notOpened(reserved, error, rules);
        continue;
      }
      if (isWanted(session, options.ended === true)) {
        this.#metrics.count("claims");
        return { session, reserved };
      }
      const isWantedByNobody = !isWanted(session, true);
      await session.close();
      await this.#claims.pass(reserved, isWantedByNobody);
    }
    return null;
  }

  /** One session that cannot be opened must not stop the others. */
  async #notOpened(reserved: Reserved, error: unknown, rules: ClaimRules): Promise<void> {
    if (isHoldfastError(error, "SESSION_BUSY")) return this.#claims.giveBack(reserved, BUSY_MS);
    if (isHoldfastError(error, "SESSION_NOT_FOUND")) return this.#claims.forget(reserved);
    if (isHoldfastError(error, "STORE_CLOSED", "STORE_IO", "STORE_FULL", "SYNC_FAILED")) {
      // The server is away, which does not count as a try. If it stays away, the claim is due after its pause.
      await this.#claims.giveBack(reserved, rules.backoffMs).catch(() => undefined);
      throw error;
    }
    await this.#claims.fail(reserved, error, rules);
  }

  async #finish<M>(
    { session, reserved }: ClaimedSession<M>,
    options: ClaimOptions<M>,
    finish: Finish<M>,
  ): Promise<ClaimResult> {
    const { signal = new AbortController().signal } = options;
    const { tries } = reserved;
    let failure: { readonly error: unknown } | null = null;
    try {
      await finish(session, { tries, signal });
      if (session.turn) failure = { error: new Error("the function returned before the turn was over") };
    } catch (error) {
      failure = { error };
    }
    const how = session.interruption?.how.kind;
    await session.close().catch((error: unknown) => {
      failure ??= { error };
    });
    const outcome = await this.#settleClaim(reserved, failure, how, signal, rulesOf(options));
    this.#metrics.count(OUTCOME_COUNTERS[outcome]);
    return { session: reserved.id, tries, outcome, ...(failure ? { error: failure.error } : {}) };
  }

  async #settleClaim(
    reserved: Reserved,
    failure: { readonly error: unknown } | null,
    how: Interruption<unknown>["how"]["kind"] | undefined,
    signal: AbortSignal,
    rules: ClaimRules,
  ): Promise<ClaimResult["outcome"]> {
    if (failure && (signal.aborted || errorKind(failure.error) === "store")) {
      await this.#claims.giveBack(reserved, signal.aborted ? 0 : rules.backoffMs);
      return "given-back";
    }
    if (failure) return (await this.#claims.fail(reserved, failure.error, rules)) ? "gave-up" : "failed";
    await this.#claims.forget(reserved);
    return how === undefined ? "finished" : how === "suspended" ? "waiting" : "ended";
  }
}

function rulesOf<M>({
  maxTries = MAX_TRIES,
  backoffMs = BACKOFF_MS,
  backoffMaxMs = BACKOFF_MAX_MS,
}: ClaimOptions<M>): ClaimRules {
  return { maxTries, backoffMs, backoffMaxMs };
}

/** A turn that somebody ended on purpose, or that waits for a person, is not the fleet's to finish. */
function isWanted({ state }: Pick<Session<unknown>, "state">, alsoEnded: boolean): boolean {
  return state === "interrupted" || (alsoEnded && (state === "stopped" || state === "failed"));
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
