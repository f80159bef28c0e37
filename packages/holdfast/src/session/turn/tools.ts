import { asMessageError, reading } from "../../admit/admit.ts";
import { admitAppState } from "../../admit/app-state.ts";
import { callInDoubt, callTaken, callUnknown, invalid } from "../../admit/refusals.ts";
import { assertSize, METADATA_BYTES_MAX } from "../../admit/size.ts";
import type { ExchangeCall } from "../../conversation/exchange.ts";
import type {
  AppStateRecord,
  ToolEnded,
  ToolProcess,
  ToolProcessRecord,
  ToolStarted,
} from "../../conversation/records/records.ts";
import type { Step } from "../../conversation/steps.ts";
import type { CallPlace, ToolStart } from "../../conversation/tool-starts.ts";
import { defined } from "../../defined.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import { newId } from "../../journal/id.ts";
import { callsInDoubt } from "../../view/interruption.ts";
import { inDoubtWords, unusedWords } from "../../view/model-words.ts";
import { synthesizeResultSaying } from "../../view/repairs.ts";
import type { SessionContext } from "./context.ts";
import { appendOutcome } from "./outcome.ts";
import { assertProbe } from "./probe.ts";
import { settleCall } from "./settle.ts";
import { Steps } from "./steps.ts";
import type { ToolOptions, ToolStartOptions } from "./surface.ts";
import type { ToolCall } from "./tool-call.ts";
import { warnOnce } from "./warn-once.ts";

type StartOptions = ToolStartOptions & Pick<ToolOptions, "probeMs">;

/** The tool may run; or it may not, because its outcome is known: an earlier process had started it. */
type StartResult =
  | { readonly running: Running; readonly outcome?: undefined }
  | { readonly running?: undefined; readonly outcome: Outcome };

/** While a probe is asked. */
export interface ProbeContext {
  /** Ends the question. */
  readonly stopped: AbortSignal;
  /** Throws if the turn has ended meanwhile. */
  readonly assertOpen: () => void;
  /** Throws if nothing new may begin. */
  readonly assertBegins: () => void;
}

/** A tool that this process runs, and its call. */
export interface Running {
  readonly call: string;
  readonly name: string;
  readonly startedMs: number;
  /** Null: the call's message was not recorded when the tool started. */
  place: CallPlace | null;
  /** The process that it runs in was recorded. */
  hasProcess?: true;
  readonly toolCall: ToolCall;
  /** Made when a step is asked for. Null: the call has none, from this run or an earlier one. */
  steps: Steps<unknown> | null;
  readonly stepsOf: () => Steps<unknown>;
}

const NO_STEPS: ReadonlyMap<string, Step> = new Map();

/** The tools of one turn: which are running, and the records of their starts and ends (R5, R6). */
export class Tools<M> {
  readonly #context: SessionContext<M>;
  readonly #turn: number;
  readonly #running = new Set<Running>();

  constructor(context: SessionContext<M>, turn: number) {
    this.#context = context;
    this.#turn = turn;
  }

  /**
   * `isStreaming`: a streaming message may make the call. `asking`: when the answer of a probe no longer counts. Throws
   * CALL_UNKNOWN, CALL_TAKEN, CALL_IN_DOUBT, RECORD_INVALID, RECORD_TOO_LARGE, and store errors.
   */
  async start(callId: string, given: StartOptions, isStreaming: boolean, asking: ProbeContext): Promise<StartResult> {
    const { log, admission, conversation } = this.#context;
    const options = reading("options", () => ({ ...given }));
    if (typeof options.probe !== "boolean") assertProbe(options.probe, options);
    const input = options.input === undefined ? undefined : admission.value(options.input).value;
    const before = options.before === undefined ? undefined : admission.value(options.before).value;
    if (before !== undefined) assertSize("`before`", "tool.started", before, METADATA_BYTES_MAX);
    // The message that makes the call may still be on its way to a store that answers later.
    if (log.isBehind) await log.caughtUp();
    this.#context.assertOpen();
    const call = this.#callToStart(callId, options, isStreaming);
    const place = call ? { message: call.item.entry.id, index: call.index } : null;
    const name = call?.call.name ?? options.name!;
    const replay = options.replay === "safe" ? ("safe" as const) : undefined;
    const probe = options.probe ? (true as const) : undefined;
    const { toolStarts } = conversation;
    const inDoubt = place && toolStarts.of(place.message, place.index);
    const earlier = inDoubt ?? (place && toolStarts.unstarted(place.message, place.index));
    const key = earlier?.idempotencyKey ?? newId();
    const running = this.#run(callId, name, key, place, earlier, asking.stopped);
    this.#running.add(running);
    try {
      const isSafe = inDoubt?.replay === "safe" && replay === "safe";
      if (inDoubt && !isSafe) {
        const settled = await this.#settle(inDoubt, options, asking);
        if ("outcome" in settled) {
          this.#running.delete(running);
          return settled;
        }
        running.place = settled;
      }
      asking.assertBegins();
      const { message, index } = running.place ?? { message: null };
      const record: ToolStarted = {
        ...{ kind: "tool.started", turn: this.#turn, call: callId, message, name },
        ...defined({ index, input, replay, child: options.child, idempotencyKey: key, probe, before }),
      };
      // Durable before the tool runs: otherwise nobody could tell after a crash that it may have run (R5).
      await log.append([record]);
      return { running };
    } catch (error) {
      this.#running.delete(running);
      throw error;
    }
  }

  /**
   * The call was started before the turn was cut off. Asks what happened to it, and returns the outcome; or where the
   * call is, if it may run because it has not taken effect. If nobody can tell, the model is told so. Throws
   * CALL_IN_DOUBT, CALL_TAKEN, and store errors.
   */
  async #settle(
    start: ToolStart,
    options: StartOptions,
    { stopped, assertOpen }: ProbeContext,
  ): Promise<{ outcome: Outcome } | CallPlace> {
    const { conversation, log } = this.#context;
    const refusal = callInDoubt(start.call, start.name);
    const call = callsInDoubt(conversation).find(({ id, startedSeq }) => startedSeq === start.seq && id === start.call);
    const { probe } = options;
    if (typeof probe !== "function" || !call) throw refusal;
    const settled = await settleCall(this.#context, this.#turn, call, probe, options, stopped, assertOpen);
    switch (settled.kind) {
      case "outcome":
        return { outcome: settled.outcome };
      case "unstarted":
        return { message: settled.call.message!, index: settled.call.index };
      case "gone":
        throw callTaken(start.call, "has got its result meanwhile, or is no longer in the conversation");
      case "unknown": {
        const entries = synthesizeResultSaying(
          conversation.dialect,
          settled.call,
          inDoubtWords(settled.call),
          settled.call.state,
        );
        if (entries.length > 0) await log.append([{ kind: "repair", turn: this.#turn, entries }]);
        return { outcome: { error: refusal } };
      }
    }
  }

  #run(
    call: string,
    name: string,
    key: string,
    place: CallPlace | null,
    earlier: ToolStart | null,
    signal: AbortSignal,
  ): Running {
    const stepsOf = (): Steps<unknown> => {
      running.steps ??= new Steps(this.#context as SessionContext<unknown>, this.#turn, {
        ...{ id: call, name, key, signal, steps: new Map(earlier?.steps ?? NO_STEPS), gap: earlier?.gap === true },
        isRunning: () => this.#running.has(running),
        place: () => {
          const isHere = running.place !== null && this.#isThere(running.place.message);
          // Once the tool has ended, an open call with its id is another one (R9).
          if (!isHere && !this.#running.has(running)) return null;
          const at = this.#placeOf(call, running);
          return { message: at?.message ?? null, ...defined({ index: at?.index }) };
        },
      });
      return running.steps;
    };
    const step: ToolCall["step"] = (name, fn, options) => stepsOf().run(name, fn, options);
    const toolCall = { id: call, key, step };
    const running: Running = { call, name, startedMs: performance.now(), place, toolCall, steps: null, stepsOf };
    if (earlier?.steps) stepsOf();
    return running;
  }

  /** Whether a tool has neither ended nor been answered by a message. */
  get areRunning(): boolean {
    const { exchange } = this.#context.conversation;
    for (const { call, place } of this.#running) if (place === null || exchange.open(call)) return true;
    return false;
  }

  /** It is over, and its outcome is not known. Throws CALL_UNKNOWN. */
  leave(which: Running | string): void {
    const running = typeof which === "string" ? this.#runningOf(which) : which;
    if (!running) throw callUnknown(which as string);
    this.#running.delete(running);
  }

  /** The steps of a running tool. Throws CALL_UNKNOWN. */
  async stepsOf(callId: string): Promise<Steps<unknown>> {
    this.#context.assertOpen();
    const running = this.#runningOf(callId);
    if (!running) throw callUnknown(callId);
    return running.stepsOf();
  }

  /** Throws CALL_UNKNOWN, and store errors. */
  async runsIn(callId: string, given: ToolProcess): Promise<void> {
    this.#context.assertOpen();
    const { pid, started, group } = reading("process", () => ({ ...given }));
    if (!Number.isSafeInteger(pid) || pid < 1 || typeof started !== "string") {
      throw invalid("a process needs a pid and a text that distinguishes it from a later one (`started`)");
    }
    const running = this.#runningOf(callId, ({ hasProcess }) => !hasProcess) ?? this.#runningOf(callId);
    if (!running) throw callUnknown(callId);
    const place = this.#placeOf(callId, running);
    const record: ToolProcessRecord = {
      ...{ kind: "tool.process", turn: this.#turn, call: callId, message: place?.message ?? null, pid, started },
      ...defined({ index: place?.index, group: group || undefined }),
    };
    running.hasProcess = true;
    await this.#context.log.append([record]);
  }

  /** `which`: the tool, if several with this call id run. Throws CALL_UNKNOWN, MESSAGE_UNFIT, store errors (retry). */
  async end(
    callId: string,
    outcome: Outcome,
    shown?: M,
    which?: Running,
    state: readonly AppStateRecord[] = [],
  ): Promise<void> {
    this.#context.assertOpen();
    const running = which ?? this.#runningOf(callId);
    const place = this.#placeOf(callId, running);
    if (!running && !place) throw callUnknown(callId);
    const name = running?.name ?? place!.name;
    const ms = running ? Math.round(performance.now() - running.startedMs) : undefined;
    const record: ToolEnded = {
      ...{ kind: "tool.ended", id: newId(), turn: this.#turn, call: callId, message: place?.message ?? null, name },
      ...defined({ index: place?.index, ms }),
    };
    if (running) this.#running.delete(running);
    const ended = this.#context.admission.outcome(outcome);
    // A run that failed may not have come to all of them.
    const unused = ended.error === undefined ? (running?.steps?.unused ?? []) : [];
    if (unused.length > 0) {
      record.unusedSteps = unused;
      warnOnce(unusedWords(name, unused), "HOLDFAST_STEP");
    }
    try {
      await appendOutcome(this.#context, record, ended, shown, undefined, state);
    } catch (error) {
      if (running) this.#running.add(running);
      throw asMessageError(error);
    }
  }

  /** The same, with the state that comes with it. The tool has run, so its outcome is recorded whatever that throws. */
  async endWith<T>(
    callId: string,
    outcome: Outcome<T>,
    appState: ToolOptions<T>["appState"],
    running: Running,
  ): Promise<void> {
    let state: readonly AppStateRecord[] = [];
    let thrown: { readonly error: unknown } | null = null;
    try {
      state = admitAppState(this.#context.admission, appState?.(outcome));
    } catch (error) {
      thrown = { error };
    }
    await this.end(callId, outcome, undefined, running, state);
    if (thrown) throw thrown.error;
  }

  /** Null: the call is not recorded yet, and the application has given its name and input (R9). */
  #callToStart(callId: string, options: StartOptions, isStreaming: boolean): ExchangeCall<M> | null {
    const { exchange } = this.#context.conversation;
    const open = exchange.open(callId);
    // Servers reuse ids, even within one message: each start means another call.
    const call = open && this.#isRunning(open) ? this.#nextOf(open) : open;
    if (call) {
      if (call.call.by === "provider") throw callTaken(callId, "is run by the provider itself");
      if (call.approved === false) throw callTaken(callId, "was not approved");
      return call;
    }
    const isStray = [...this.#running].some((one) => one.call === callId && one.place === null);
    if (open || isStray) throw callTaken(callId, "is already running");
    // The message being streamed may reuse an id of the step before it.
    const mayBeNew = options.name !== undefined && isStreaming && exchange.isClosed;
    if (exchange.knows(callId) && !mayBeNew) throw callTaken(callId, "already has its result");
    if (options.name === undefined) throw callUnknown(callId);
    return null;
  }

  #nextOf({ call: { id }, item }: ExchangeCall<M>): ExchangeCall<M> | null {
    const { calls } = this.#context.conversation.exchange;
    return calls.find((one) => one.item === item && one.call.id === id && !one.answer && !this.#isRunning(one)) ?? null;
  }

  #isRunning({ call: { id }, item, index }: ExchangeCall<M>): boolean {
    for (const { call, place } of this.#running) {
      if (call !== id) continue;
      if (place === null || (place.message === item.entry.id && place.index === index)) return true;
      // Its start moved with the call.
      const isMoved = !this.#isThere(place.message);
      if (isMoved && this.#context.conversation.toolStarts.of(item.entry.id, index)) return true;
    }
    return false;
  }

  /** The newest message's first start of such a call (R9): an older tool, answered by a message, may never end. */
  #runningOf(callId: string, fits: (running: Running) => boolean = () => true): Running | null {
    const all = [...this.#running].filter((one) => one.call === callId && fits(one));
    const newest = all.at(-1)?.place?.message;
    return all.find(({ place }) => place?.message === newest) ?? null;
  }

  /** The position of the call that a result answers: as it was when the tool started, or where it has moved since. */
  #placeOf(callId: string, running: Running | null): { message: string; index: number; name: string } | null {
    const { exchange } = this.#context.conversation;
    if (running?.place && this.#isThere(running.place.message)) return { ...running.place, name: running.name };
    const call = exchange.open(callId) ?? exchange.unheld(callId);
    if (call) return { message: call.item.entry.id, index: call.index, name: call.call.name };
    return running?.place ? { ...running.place, name: running.name } : null;
  }

  /** Another message may have replaced it and make the same call. */
  #isThere(message: string): boolean {
    const entry = this.#context.conversation.find(message)?.entry;
    return entry !== undefined && entry.replacedBy === undefined;
  }
}
