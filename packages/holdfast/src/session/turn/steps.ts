import { reading, wordsOf } from "../../admit/admit.ts";
import { callTaken, invalid, stepInDoubt, stepLimit, stepTaken, stepValueLost } from "../../admit/refusals.ts";
import { assertSize, weightOf } from "../../admit/size.ts";
import type { StepEnded, StepStarted } from "../../conversation/records/records.ts";
import type { Step } from "../../conversation/steps.ts";
import { defined } from "../../defined.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import { errorKind } from "../../errors.ts";
import { snapshot } from "../../journal/lines/plain.ts";
import { oneLine } from "../../text/one-line.ts";
import { beginningOf } from "../../text/well-formed.ts";
import { PROBED, reasonWords } from "../../view/model-words.ts";
import type { SessionContext } from "./context.ts";
import { wordsInstead } from "./outcome.ts";
import { askProbe, assertProbe, NAME_CHARS, type ProbeAnswer, type ProbeOptions, WHY_CHARS } from "./probe.ts";
import { warnOnce } from "./warn-once.ts";

/** At most this many steps in one call. */
const STEPS_MAX = 1000;
const STEP_CHARS_MAX = 200;
const MIB = 1024 * 1024;
/** A larger value is not recorded. */
const VALUE_BYTES_MAX = MIB;
/** Once what a call's steps returned and threw takes this much, no other step starts. */
const VALUES_CHARS_MAX = 8 * MIB;
/** Of a step that fails then, this much of its error is recorded. */
const WORDS_CHARS_FULL = 1000;

/** The step that a function runs for. */
export interface StepCall {
  readonly name: string;
  /**
   * The step's idempotency key, to send to a service: the call's key and the step's name. The same whenever the step
   * runs again.
   */
  readonly key: string;
}

/** A step whose outcome is unknown: an earlier run of its tool started it. */
export interface ProbedStep extends StepCall {
  readonly call: { readonly id: string; readonly name: string };
  readonly startedAt: string;
  /** Fires when the answer no longer counts: after the time limit, or when the turn is stopped. */
  readonly signal: AbortSignal;
}

export interface StepOptions<T = unknown> extends ProbeOptions {
  /**
   * "safe": running the step twice does no harm. It runs again only if the recorded rule and this one agree.
   */
  readonly replay?: "never" | "safe";
  /** Finds out what happened to the step, if an earlier run started it. Must change nothing. */
  readonly probe?: (step: ProbedStep) => ProbeAnswer<T> | Promise<ProbeAnswer<T>>;
}

/** What `turn.stepStarted` answers: the step may run; it had ended, with this outcome; or nobody knows. */
export type StepStart =
  | { readonly state: "run"; readonly key: string }
  | { readonly state: "finished"; readonly key: string; readonly value: unknown }
  | { readonly state: "failed"; readonly key: string; readonly error: string }
  | { readonly state: "unknown"; readonly key: string };

export interface StepStartOptions {
  readonly replay?: "never" | "safe";
  /** The program can ask what happened to the step. */
  readonly probe?: boolean;
  /** The answer was "unknown", and its service was asked: it has not taken effect, and may run. */
  readonly didNotHappen?: boolean;
}

/** A run of a tool, as its steps see it. */
interface ToolRun {
  readonly id: string;
  readonly name: string;
  readonly key: string;
  /** False once the tool has ended. */
  readonly isRunning: () => boolean;
  /** Where the call is now; null if the tool has ended and nothing tells. */
  readonly place: () => Pick<StepStarted, "message" | "index"> | null;
  /** What earlier runs recorded. */
  readonly steps: ReadonlyMap<string, Step>;
  /** Records are missing: an earlier run may have started steps of which there is no record. */
  readonly gap: boolean;
  readonly signal: AbortSignal;
}

/** The steps of one run of a tool. */
export class Steps<M> {
  readonly #context: SessionContext<M>;
  readonly #turn: number;
  readonly #run: ToolRun;
  /** What this run has asked for. */
  readonly #asked = new Map<string, { state: "known" | "unknown" | "started" | "over"; readonly sinceMs: number }>();
  readonly #names: Set<string>;
  #chars = 0;

  constructor(context: SessionContext<M>, turn: number, run: ToolRun) {
    this.#context = context;
    this.#turn = turn;
    this.#run = run;
    this.#names = new Set(run.steps.keys());
    for (const { ended } of run.steps.values()) this.#chars += sizeOf(ended);
  }

  /** `ToolCall.step`. */
  async run<T>(
    name: string,
    fn: (signal: AbortSignal, step: StepCall) => T | Promise<T>,
    given: StepOptions<T> = {},
  ): Promise<T> {
    const { replay, probe, probeMs } = reading("options", () => ({ ...given }));
    assertProbe(probe, defined({ probeMs }));
    const { signal } = this.#run;
    signal.throwIfAborted();
    if (this.#asked.has(name)) throw stepTaken(this.#run.id, name);
    const options = { ...defined({ replay }), probe: probe !== undefined };
    let start = await this.start(name, options);
    if (start.state === "unknown") {
      const { key } = start;
      const { id, name: tool } = this.#run;
      if (!probe) throw stepInDoubt(id, name);
      const startedAt = this.#run.steps.get(name)?.at ?? "";
      const asked = { name, key, call: { id, name: tool }, startedAt };
      const answer = await askProbe(
        probe,
        asked,
        [tool, `the step ${name} of the call ${id}`],
        defined({ probeMs }),
        signal,
      );
      signal.throwIfAborted();
      if (answer === "unknown") throw stepInDoubt(id, name);
      if (answer !== "did-not-happen") {
        await this.end(name, answer, PROBED);
        return resultOf(answer as Outcome<T>);
      }
      start = await this.start(name, { ...options, didNotHappen: true });
    }
    if (start.state === "finished") return start.value as T;
    // A tool that went on in another way must go the same way again.
    if (start.state === "failed") throw new Error(start.error);
    const { failure } = this.#context.log.journal;
    // What comes of it could not be recorded, so the step does not run either (P8).
    if (failure) throw failure;
    if (signal.aborted) {
      await this.end(name, { error: `It did not run: ${reasonWords(wordsOf(signal.reason))}.` });
      throw signal.reason;
    }
    let outcome: Outcome<T>;
    try {
      outcome = { value: await fn(signal, { name, key: start.key }) };
    } catch (error) {
      // After a store failure nobody knows how far the step got, so it is not recorded as ended.
      if (errorKind(error) === "store") throw error;
      outcome = { error: error ?? new Error("the step failed without an error") };
    }
    await this.end(name, outcome);
    return resultOf(outcome);
  }

  /**
   * Records the start, if the step may run; otherwise it records nothing, and answers the same again. Throws
   * STEP_TAKEN, STEP_LIMIT, STEP_VALUE_LOST, CALL_TAKEN, RECORD_INVALID, store errors.
   */
  async start(name: string, given: StepStartOptions = {}): Promise<StepStart> {
    const { replay, probe, didNotHappen } = reading("options", () => ({ ...given }));
    this.#context.assertOpen();
    const { id, steps, gap } = this.#run;
    if (typeof name !== "string" || name === "" || name.length > STEP_CHARS_MAX || !name.isWellFormed())
      throw invalid(`the name of a step is a text of 1 to ${STEP_CHARS_MAX} characters`);
    if (!this.#run.isRunning()) throw callTaken(id, "has ended");
    const asked = this.#asked.get(name);
    const isSettled = didNotHappen === true && asked?.state === "unknown";
    if (asked && asked.state !== "known" && asked.state !== "unknown") throw stepTaken(id, name);
    const key = `${this.#run.key}/${name}`;
    const known = steps.get(name);
    if (known?.ended) {
      this.#asked.set(name, { state: "known", sinceMs: 0 });
      const { value, error, lost, redacted } = known.ended;
      if (error !== undefined) return { state: "failed", key, error };
      if (lost || redacted) throw stepValueLost(id, name);
      return { state: "finished", key, value: structuredClone(value) };
    }
    const isInDoubt = known !== undefined || gap;
    const isSafe = known?.replay === "safe" && replay === "safe";
    if (isInDoubt && !isSafe && !isSettled) {
      this.#asked.set(name, { state: "unknown", sinceMs: 0 });
      return { state: "unknown", key };
    }
    if (this.#names.size >= STEPS_MAX && !this.#names.has(name)) throw stepLimit(id, name, `${STEPS_MAX} steps`);
    if (this.#chars >= VALUES_CHARS_MAX) throw stepLimit(id, name, `${VALUES_CHARS_MAX / MIB} MiB of values`);
    this.#names.add(name);
    this.#asked.set(name, { state: "started", sinceMs: performance.now() });
    const record: StepStarted = {
      ...{ kind: "step.started", turn: this.#turn, call: id, ...this.#run.place()!, step: name, idempotencyKey: key },
      ...defined({ replay: replay === "safe" ? ("safe" as const) : undefined, probe: probe || undefined }),
    };
    try {
      // Durable before the step runs: otherwise nobody could tell after a crash that it may have run.
      await this.#context.log.append([record]);
    } catch (error) {
      // It did not start, and can be asked for again once there is space.
      if (asked) this.#asked.set(name, asked);
      else this.#asked.delete(name);
      throw error;
    }
    return { state: "run", key };
  }

  /** `source`: who says so, if not the step itself. Throws RECORD_INVALID if it does not run, store errors (retry). */
  async end(name: string, outcome: Outcome, source?: string): Promise<void> {
    this.#context.assertOpen();
    const asked = this.#asked.get(name);
    const isRunning = asked?.state === "started" || (asked?.state === "unknown" && source !== undefined);
    if (!asked || !isRunning) throw invalid(`the step ${JSON.stringify(String(name).slice(0, 80))} is not running`);
    const place = this.#run.place();
    // It has outlived its tool, whose call was recorded later, and could not be told from another one with its id.
    if (place === null) return;
    const { state, sinceMs } = asked;
    const ms = state === "started" ? Math.round(performance.now() - sinceMs) : undefined;
    asked.state = "over";
    const record: StepEnded = {
      ...{ kind: "step.ended", turn: this.#turn, call: this.#run.id, ...place, step: name },
      ...this.#recordable(name, outcome),
      ...defined({ ms, source }),
    };
    this.#chars += sizeOf(record);
    try {
      await this.#context.log.append([record]);
    } catch (error) {
      asked.state = state;
      throw error;
    }
  }

  /** Steps of earlier runs that this run has not asked for. */
  get unused(): string[] {
    return [...this.#run.steps.keys()].filter((name) => !this.#asked.has(name));
  }

  /** The value exactly, because a later run gets it from the journal; or, in words, why it cannot be recorded. */
  #recordable(name: string, outcome: Outcome): Pick<StepEnded, "value" | "error" | "redacted" | "lost"> {
    const { admission } = this.#context;
    const { value, error } = reading("outcome", () => ({ ...outcome }));
    const isFull = this.#chars >= VALUES_CHARS_MAX;
    if (error !== undefined) {
      const words = admission.words(wordsOf(error));
      return { error: isFull ? beginningOf(words, WORDS_CHARS_FULL) : words };
    }
    if (value === undefined) return {};
    try {
      const copy = snapshot(value, "value");
      const { value: clean, redacted } = admission.value(copy);
      const limit = isFull ? 0 : VALUE_BYTES_MAX;
      if (clean !== undefined) assertSize("the value", "step.ended", clean, limit);
      if (redacted) this.#warn(name, "it holds what redaction removes");
      return defined({ value: clean, redacted: redacted || undefined });
    } catch (refused) {
      const words = wordsInstead(refused, false);
      if (words === null) throw refused;
      this.#warn(name, words);
      return { value: words, lost: true };
    }
  }

  #warn(name: string, why: string): void {
    const of = `the step ${oneLine(name, NAME_CHARS)} of ${oneLine(this.#run.name, NAME_CHARS)}`;
    const text = `The value of ${of} is not recorded: ${oneLine(why, WHY_CHARS)}. If its tool runs again, this step fails with STEP_VALUE_LOST.`;
    warnOnce(text, "HOLDFAST_STEP");
  }
}

function sizeOf(ended: Pick<StepEnded, "value" | "error"> | null): number {
  return weightOf(ended?.value) + (ended?.error?.length ?? 0);
}

function resultOf<T>(outcome: Outcome<T>): T {
  if (outcome.error !== undefined) throw outcome.error;
  return outcome.value as T;
}
