import { type Admission, asMessageError, reading, unfit } from "../../admit/admit.ts";
import { callTaken, callUnknown, invalid } from "../../admit/refusals.ts";
import { assertSize, isTooLarge, MESSAGE_BYTES_MAX } from "../../admit/size.ts";
import type { ExchangeCall } from "../../conversation/exchange.ts";
import type { ToolEnded, ToolProcess, ToolProcessRecord, ToolStarted } from "../../conversation/records.ts";
import { defined } from "../../defined.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import { isHoldfastError } from "../../errors.ts";
import { newId } from "../../journal/id.ts";
import { encodeMessage } from "../../replace/retained.ts";
import type { ToolOptions } from "../surface.ts";
import type { SessionContext } from "./context.ts";

/** JSON inside a string is escaped: each byte can grow to this many. */
const BYTES_PHRASED_MAX = 12;

/** What is said in place of an outcome that cannot be recorded; null if the error is another one. */
function wordsInstead(error: unknown, isShown: boolean): string | null {
  if (isHoldfastError(error, "RECORD_TOO_LARGE"))
    return `(The result was too large to be recorded: ${String(error.facts["bytes"] ?? "over 512 million")} bytes.)`;
  if (isHoldfastError(error, "RECORD_NOT_JSON") && !isShown)
    return `(The result could not be recorded: ${String(error.facts["why"])}.)`;
  return null;
}

type Ended = ReturnType<Admission<unknown>["outcome"]>;

/** A tool that this process runs, and its call. */
export interface Running {
  readonly call: string;
  readonly name: string;
  readonly startedMs: number;
  /** Null: the call's message was not recorded when the tool started. */
  readonly place: { readonly message: string; readonly index: number } | null;
  /** The process that it runs in was recorded. */
  hasProcess?: true;
}

/** The tools of one turn: which are running, and the records of their starts and ends (R5, R6). */
export class Tools<M> {
  readonly #context: SessionContext<M>;
  readonly #turn: number;
  readonly #running = new Set<Running>();

  constructor(context: SessionContext<M>, turn: number) {
    this.#context = context;
    this.#turn = turn;
  }

  /** `isStreaming`: a streaming message may make the call. Throws CALL_UNKNOWN, CALL_TAKEN, and store errors. */
  async start(callId: string, given: ToolOptions, isStreaming: boolean): Promise<Running> {
    const { log, admission } = this.#context;
    const options = reading("options", () => ({ ...given }));
    const input = options.input === undefined ? undefined : admission.value(options.input).value;
    // The message that makes the call may still be on its way to a store that answers later.
    if (log.isBehind) await log.caughtUp();
    this.#context.assertOpen();
    const call = this.#callToStart(callId, options, isStreaming);
    const place = call ? { message: call.item.entry.id, index: call.index } : null;
    const name = call?.call.name ?? options.name!;
    const replay = options.replay === "safe" ? ("safe" as const) : undefined;
    const record: ToolStarted = {
      ...{ kind: "tool.started", turn: this.#turn, call: callId, message: place?.message ?? null, name },
      ...defined({ index: place?.index, input, replay, child: options.child }),
    };
    const running: Running = { call: callId, name, startedMs: performance.now(), place };
    this.#running.add(running);
    try {
      // Durable before the tool runs: otherwise nobody could tell after a crash that it may have run (R5).
      await log.append([record]);
      return running;
    } catch (error) {
      this.#running.delete(running);
      throw error;
    }
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
  async end(callId: string, outcome: Outcome, shown?: M, which?: Running): Promise<void> {
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
    try {
      await this.#append(record, this.#context.admission.outcome(outcome), shown);
    } catch (error) {
      if (running) this.#running.add(running);
      throw asMessageError(error);
    }
  }

  /** The tool has run: record at least that, even if its result cannot be recorded. */
  async #append(record: ToolEnded, ended: Ended, shown: M | undefined): Promise<void> {
    const { log } = this.#context;
    try {
      await log.append([{ ...record, ...ended, ...this.#shown(record, ended, shown) }]);
    } catch (error) {
      const words = wordsInstead(error, shown !== undefined);
      if (words === null) throw error;
      await log.append([{ ...record, ...(ended.error === undefined ? { value: words } : { error: words }) }]);
    }
  }

  /** What the model sees instead. Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, RECORD_TOO_LARGE. */
  #shown({ call: id, name }: ToolEnded, ended: Ended, given: M | undefined): Pick<ToolEnded, "shown" | "redacted"> {
    const { admission } = this.#context;
    const { dialect } = admission;
    if (given !== undefined) {
      const { stored, redacted } = admission.message(given);
      // Otherwise the call would stay open and read as if it had never run.
      if (dialect.results(admission.decoded({ stored })).length === 0) {
        throw unfit("`shown` must be a message that holds the tool's result");
      }
      return { shown: stored, ...defined({ redacted: redacted || undefined }) };
    }
    // The dialect's message may be larger than the value, and must fit into an epoch too.
    if (isTooLarge(ended, MESSAGE_BYTES_MAX / BYTES_PHRASED_MAX)) {
      const message = dialect.result(
        { id, name },
        ended.error === undefined ? { value: ended.value } : { error: ended.error },
      );
      if (message !== null) assertSize("the result", "tool.ended", encodeMessage(dialect, message), MESSAGE_BYTES_MAX);
    }
    return {};
  }

  /** Null: the call is not recorded yet, and the application has given its name and input (R9). */
  #callToStart(callId: string, options: ToolOptions, isStreaming: boolean): ExchangeCall<M> | null {
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
