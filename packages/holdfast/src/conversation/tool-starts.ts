import { defined } from "../defined.ts";
import type { Dialect, Entry } from "../dialects/dialect.ts";
import type { Json } from "../journal/record.ts";
import type {
  StartedCheckpoint,
  ToolEnded,
  ToolProcess,
  ToolProcessRecord,
  ToolStarted,
  ToolUnstarted,
} from "./records/records.ts";
import { addStep, type Step, type StepRecord, stepRecords } from "./steps.ts";

/** A tool that was started. */
export interface ToolStart {
  readonly turn: number;
  readonly call: string;
  readonly name: string;
  readonly input: Json | undefined;
  readonly at: string;
  /** The seq of its start record, which identifies the writer that started it. */
  readonly seq: number;
  readonly replay?: "safe";
  readonly child?: string;
  readonly process?: ToolProcess;
  /** The call's idempotency key; absent in journals of versions without. */
  readonly idempotencyKey?: string;
  readonly probe?: true;
  readonly before?: Json;
  /** What its runs recorded of their steps. */
  readonly steps?: Map<string, Step>;
  /** Records are missing since: it may have started steps of which there is no record. */
  readonly gap?: true;
  /** It has not taken effect: who said so. */
  readonly unstarted?: string;
}

type Stamped<R> = R & { readonly seq: number; readonly at: string };

/** Tool starts without an end. A start whose call is not recorded yet is an early start (R9). */
export class ToolStarts {
  readonly #byPlace = new Map<string, ToolStart>();
  /** Those that have not taken effect. */
  readonly #unstarted = new Map<string, ToolStart>();
  readonly #earlyStarts = new Map<string, { readonly run: ToolStart; ended: Stamped<ToolEnded> | null }>();

  start(record: Stamped<Omit<ToolStarted, "kind"> & Pick<StartedCheckpoint, "process" | "unstarted" | "gap">>): void {
    const { turn, call, message, index = 0, name, input, at, seq, child } = record;
    const { replay, process, idempotencyKey, probe, before, unstarted } = record;
    const earlier = typeof message === "string" ? (this.of(message, index) ?? this.unstarted(message, index)) : null;
    const run = {
      ...{ turn, call, name, input, at, seq },
      ...defined({ replay, child: child || undefined, process, probe, before }),
      // A version without keys may have run it in between.
      ...defined({ idempotencyKey: idempotencyKey ?? earlier?.idempotencyKey }),
      ...defined({ steps: earlier?.steps, gap: record.gap ?? earlier?.gap }),
    };
    if (message === null || message === undefined) this.#earlyStarts.set(call, { run, ended: null });
    else {
      this.#byPlace.set(`${index} ${message}`, run);
      this.#unstarted.delete(`${index} ${message}`);
      if (unstarted !== undefined) this.unstart(message, index, unstarted);
    }
  }

  /** It has not taken effect, says `source`. No effect if no such tool was started. */
  unstart(message: string, index: number, source: string): void {
    const run = this.of(message, index);
    if (!run) return;
    this.end(message, index);
    this.#unstarted.set(`${index} ${message}`, { ...run, unstarted: source });
  }

  /** The same for an early start: its call was never recorded, so nothing is left of it. */
  #unstartEarly(call: string): void {
    if (this.#earlyStarts.get(call)?.ended === null) this.#earlyStarts.delete(call);
  }

  /** Those that have not taken effect, and have not run since. */
  get unstartedStarts(): ToolStart[] {
    return [...this.#unstarted.values()];
  }

  /** A start that has not taken effect. */
  unstarted(message: string, index: number): ToolStart | null {
    return this.#unstarted.get(`${index} ${message}`) ?? null;
  }

  /** Adds what a record says of a started tool. `placeOf`: where the open call of an id is. */
  add(
    record: Stamped<ToolProcessRecord | ToolUnstarted | StepRecord>,
    placeOf: (call: string) => CallPlace | null,
  ): void {
    const { kind, call, message = null, index = 0 } = record;
    if (kind === "tool.unstarted") {
      if (message === null) this.#unstartEarly(call);
      else this.unstart(message, index, record.source);
      return;
    }
    const change = (run: ToolStart): ToolStart =>
      kind === "tool.process" ? inProcess(run, record) : withStep(run, record);
    const early = message === null ? this.#earlyStarts.get(call) : undefined;
    const place = message !== null ? { message, index } : early ? null : placeOf(call);
    if (early) this.#earlyStarts.set(call, { ...early, run: change(early.run) });
    else if (place) this.#change(place, change);
  }

  /** No effect if no such tool was started, or it has ended. */
  #change({ message, index }: CallPlace, change: (run: ToolStart) => ToolStart): void {
    for (const starts of [this.#byPlace, this.#unstarted]) {
      const run = starts.get(`${index} ${message}`);
      if (run) starts.set(`${index} ${message}`, change(run));
    }
  }

  /** Records are missing. What had not taken effect may have started again. */
  lose(): void {
    for (const [place, { unstarted: _, ...run }] of [...this.#byPlace, ...this.#unstarted])
      this.#byPlace.set(place, { ...run, gap: true });
    this.#unstarted.clear();
  }

  of(message: string, index: number): ToolStart | null {
    return this.#byPlace.get(`${index} ${message}`) ?? null;
  }

  /** The call has moved. */
  move(message: string, index: number, to: { readonly message: string; readonly index: number }): void {
    const place = `${to.index} ${to.message}`;
    for (const [starts, others] of [
      [this.#byPlace, this.#unstarted],
      [this.#unstarted, this.#byPlace],
    ] as const) {
      const run = starts.get(`${index} ${message}`);
      if (!run) continue;
      starts.delete(`${index} ${message}`);
      others.delete(place);
      starts.set(place, run);
      return;
    }
  }

  end(message: string, index: number): void {
    this.#byPlace.delete(`${index} ${message}`);
  }

  /** False if no such tool was started. */
  endEarlyStart(record: Stamped<ToolEnded>): boolean {
    const stray = this.#earlyStarts.get(record.call);
    if (!stray) return false;
    stray.ended = record;
    return true;
  }

  get hasEarlyStarts(): boolean {
    return this.#earlyStarts.size > 0;
  }

  /** Those with neither a recorded call nor a recorded end. */
  get earlyStarts(): ToolStart[] {
    return [...this.#earlyStarts.values()].filter(({ ended }) => !ended).map(({ run }) => run);
  }

  /**
   * The ends of those whose call was never recorded. Recorded again when an epoch begins, because it may still arrive.
   */
  get earlyEnds(): ToolEnded[] {
    return [...this.#earlyStarts.values()].flatMap(({ ended }) => (ended ? [again(ended)] : []));
  }

  forgetEarlyStarts(): void {
    this.#earlyStarts.clear();
  }

  /** Links the start to its call, now recorded. Returns the tool's end, if there was one. */
  adopt(call: string, message: string, index: number): Stamped<ToolEnded> | null {
    const stray = this.#earlyStarts.get(call);
    if (!stray) return null;
    this.#earlyStarts.delete(call);
    if (!stray.ended) this.#byPlace.set(`${index} ${message}`, stray.run);
    return stray.ended;
  }

  /** For the checkpoint of an epoch. */
  saved(): StartedCheckpoint[] {
    const all: StartedCheckpoint[] = [];
    for (const [place, run] of [...this.#byPlace, ...this.#unstarted]) {
      const [index] = place.split(" ", 1);
      all.push(toCheckpoint(run, place.slice(index!.length + 1), Number(index)));
    }
    for (const { run } of this.#earlyStarts.values())
      all.push({ ...toCheckpoint(run, null), ...defined({ input: run.input }) });
    return all;
  }
}

function inProcess(run: ToolStart, { pid, started, group }: ToolProcess): ToolStart {
  // Of a run that has not begun, or has no record.
  if (run.unstarted !== undefined) return run;
  return { ...run, process: { pid, started, ...defined({ group }) } };
}

function withStep(run: ToolStart, record: StepRecord & { readonly at: string }): ToolStart {
  const steps = run.steps ?? new Map<string, Step>();
  addStep(steps, record);
  return run.steps ? run : { ...run, steps };
}

/** Drops the members that the journal adds: it will write them again. */
function again({ id, turn, call, message, name, ...rest }: ToolEnded): ToolEnded {
  const { index, value, error, ms, source, shown, redacted, unusedSteps } = rest;
  return {
    ...{ kind: "tool.ended", id, turn, call, message: message ?? null, name },
    ...defined({ index, value, error, ms, source, shown, redacted, unusedSteps }),
  };
}

/** Without the input: if the call is recorded, its message has it. */
function toCheckpoint(
  { at, seq, input: _input, steps, ...run }: ToolStart,
  message: string | null,
  index?: number,
): StartedCheckpoint {
  const place = { message, ...defined({ index }) };
  const records = steps && stepRecords(steps, { turn: run.turn, call: run.call, ...place });
  return { ...run, ...place, startedAt: at, startedSeq: seq, ...defined({ steps: records }) };
}

/** The position of a call: its message, and its index among that message's calls. */
export interface CallPlace {
  readonly message: string;
  readonly index: number;
}

/**
 * The calls that both messages make, keyed by their index in the first. Calls match by id; among several with one id,
 * by order (R9).
 */
export function sameCalls<M>(dialect: Dialect<M>, was: Entry<M>, is: Entry<M>): Map<number, CallPlace> {
  const free = new Map<string, number[]>();
  for (const [index, { id }] of dialect.calls(is.message).entries()) {
    const list = free.get(id);
    if (list) list.push(index);
    else free.set(id, [index]);
  }
  const same = new Map<number, CallPlace>();
  for (const [index, { id }] of dialect.calls(was.message).entries()) {
    const found = free.get(id)?.shift();
    if (found !== undefined) same.set(index, { message: is.id, index: found });
  }
  return same;
}
