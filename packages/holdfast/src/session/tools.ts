import { asMessageError, reading, unfit } from "../admit/admit.ts";
import { callTaken, callUnknown, invalid } from "../admit/refusals.ts";
import { assertSize, isTooLarge, MESSAGE_BYTES_MAX } from "../admit/size.ts";
import type { ExchangeCall } from "../conversation/exchange.ts";
import type { ToolEnded, ToolProcessRecord, ToolStarted } from "../conversation/records.ts";
import type { Outcome } from "../dialects/dialect.ts";
import { type HoldfastError, isHoldfastError } from "../errors.ts";
import { newId } from "../journal/id.ts";
import type { Json } from "../journal/record.ts";
import type { SessionContext } from "./context.ts";
import type { ToolOptions, ToolProcess } from "./surface.ts";

/** JSON in a text is escaped: a byte of it takes at most so many. */
const BYTES_PHRASED_MAX = 12;

function tooLarge({ facts }: HoldfastError): string {
  return `(The result was too large to be recorded: ${String(facts["bytes"] ?? "over 512 million")} bytes.)`;
}

function inWords(ended: { readonly error?: string }, words: string): { value: string } | { error: string } {
  return ended.error === undefined ? { value: words } : { error: words };
}

/** A tool that this process runs, and the call that it belongs to. */
export interface Running {
  readonly call: string;
  readonly name: string;
  readonly startedMs: number;
  /** Null: its message was not recorded when it started. */
  readonly place: { readonly message: string; readonly index: number } | null;
  /** It was said where it runs. */
  hasProcess?: true;
}

/** The tools of one turn: which of them run, and the records of their starts and ends (R5, R6). */
export class Tools<M> {
  readonly #context: SessionContext<M>;
  readonly #turn: number;
  readonly #running = new Set<Running>();

  constructor(host: SessionContext<M>, turn: number) {
    this.#context = host;
    this.#turn = turn;
  }

  /** `isStreaming`: a message is under way, which may make the call. Throws CALL_UNKNOWN, CALL_TAKEN, and what the store says. */
  async start(callId: string, given: ToolOptions, flags: { intents: boolean; isStreaming: boolean }): Promise<Running> {
    const { log, admission } = this.#context;
    const options = reading("options", () => ({ ...given }));
    const input = options.input === undefined ? undefined : admission.value(options.input).value;
    // The message that makes the call may be on its way to a store that answers later.
    if (log.isBehind) await log.caughtUp();
    this.#context.assertOpen();
    const call = this.#callToStart(callId, options, flags.isStreaming);
    const place = call ? { message: call.item.entry.id, index: call.index } : null;
    const name = call?.call.name ?? options.name!;
    const record: ToolStarted = {
      kind: "tool.started",
      turn: this.#turn,
      call: callId,
      message: place?.message ?? null,
      name,
    };
    if (place) record.index = place.index;
    if (input !== undefined) record.input = input;
    if (options.replay === "safe") record.replay = "safe";
    if (options.child !== undefined) record.child = options.child;
    if (flags.intents) record.intents = true;
    const running: Running = { call: callId, name, startedMs: performance.now(), place };
    this.#running.add(running);
    try {
      // Durable before the tool runs: else nobody could say after a crash that it may have (R5).
      await log.append([record]);
      return running;
    } catch (error) {
      this.#running.delete(running);
      throw error;
    }
  }

  /** Throws CALL_UNKNOWN, and what the store says. */
  async runsIn(callId: string, given: ToolProcess): Promise<void> {
    this.#context.assertOpen();
    const { pid, started, group } = reading("process", () => ({ ...given }));
    if (!Number.isSafeInteger(pid) || pid < 1 || typeof started !== "string") {
      throw invalid("a process has a pid and a text that tells it apart from a later one (`started`)");
    }
    const running = this.#runningOf(callId, ({ hasProcess }) => !hasProcess) ?? this.#runningOf(callId);
    if (!running) throw callUnknown(callId);
    const place = this.#placeOf(callId, running);
    const record: ToolProcessRecord = {
      kind: "tool.process",
      turn: this.#turn,
      call: callId,
      message: place?.message ?? null,
      ...(place ? { index: place.index } : {}),
      pid,
      started,
      ...(group ? { group } : {}),
    };
    running.hasProcess = true;
    await this.#context.log.append([record]);
  }

  /** `which`: the tool, if several run that were called by the same id. Throws CALL_UNKNOWN, MESSAGE_UNFIT, and what the store says: then it can be tried again. */
  async end(callId: string, outcome: Outcome, shown?: M, which?: Running): Promise<void> {
    this.#context.assertOpen();
    const running = which ?? this.#runningOf(callId);
    const place = this.#placeOf(callId, running);
    if (!running && !place) throw callUnknown(callId);
    const name = running?.name ?? place!.name;
    const record: ToolEnded = {
      kind: "tool.ended",
      id: newId(),
      turn: this.#turn,
      call: callId,
      message: place?.message ?? null,
      ...(place ? { index: place.index } : {}),
      name,
      ...this.#ended({ id: callId, name }, outcome, shown),
    };
    if (running) record.ms = Math.round(performance.now() - running.startedMs);
    if (running) this.#running.delete(running);
    try {
      await this.#append(record);
    } catch (error) {
      if (running) this.#running.add(running);
      throw asMessageError(error);
    }
  }

  /** What it came to, and what the model is to see of it. The tool has run: what is too large to be kept is told in words. */
  #ended(
    call: { readonly id: string; readonly name: string },
    outcome: Outcome,
    shown: M | undefined,
  ): Pick<ToolEnded, "value" | "error" | "shown" | "redacted"> {
    const { admission } = this.#context;
    const ended = admission.outcome(outcome);
    try {
      if (shown === undefined) {
        this.#assertPhrased(call, ended);
        return ended;
      }
      const { stored, redacted } = admission.message(shown);
      // Else the call would stay open, and read as if it had never run.
      if (admission.dialect.results(admission.decoded({ stored, redacted, role: "tool" })).length === 0) {
        throw unfit("what is shown of a tool's outcome is a message that holds its result");
      }
      return { ...ended, shown: stored, ...(redacted ? { redacted } : {}) };
    } catch (error) {
      if (!isHoldfastError(error, "RECORD_TOO_LARGE")) throw error;
      return inWords(ended, tooLarge(error));
    }
  }

  /** As the dialect puts it into a message, it may take more than the value itself, and an epoch has to bring that along. Throws RECORD_TOO_LARGE. */
  #assertPhrased(call: { readonly id: string; readonly name: string }, ended: { value?: Json; error?: string }): void {
    const { dialect } = this.#context.admission;
    if (!isTooLarge(ended, MESSAGE_BYTES_MAX / BYTES_PHRASED_MAX)) return;
    const message = dialect.result(call, ended.error === undefined ? { value: ended.value } : { error: ended.error });
    if (message === null) return;
    const stored = dialect.encode ? dialect.encode(message) : (message as Json);
    assertSize("the result", "tool.ended", stored, MESSAGE_BYTES_MAX);
  }

  /** The tool has run: that it did must be recorded, if not what it returned. */
  async #append(record: ToolEnded): Promise<void> {
    const { log } = this.#context;
    try {
      await log.append([record]);
    } catch (error) {
      const isOurs = isHoldfastError(error, "RECORD_NOT_JSON") && record.shown === undefined;
      if (!isOurs && !isHoldfastError(error, "RECORD_TOO_LARGE")) throw error;
      const { value: _value, shown: _shown, error: failed, ...rest } = record;
      const words = isOurs ? `(The result could not be recorded: ${String(error.facts["why"])}.)` : tooLarge(error);
      await log.append([{ ...rest, ...inWords(failed === undefined ? {} : { error: failed }, words) }]);
    }
  }

  /** Null: it is not recorded yet, and the application has said what it is (R9). */
  #callToStart(callId: string, options: ToolOptions, isStreaming: boolean): ExchangeCall<M> | null {
    const { exchange } = this.#context.conversation;
    const open = exchange.open(callId);
    // Servers repeat their ids, also within one message: each start means another call.
    const call = open && this.#isRunning(open) ? this.#nextOf(open) : open;
    if (call) {
      if (call.call.by === "provider") throw callTaken(callId, "is run by the provider itself");
      if (call.approved === false) throw callTaken(callId, "was not approved");
      return call;
    }
    const isStray = [...this.#running].some((one) => one.call === callId && one.place === null);
    if (open || isStray) throw callTaken(callId, "is running already");
    // The message that is being streamed may use an id of the step before it again.
    const mayBeNew = options.name !== undefined && isStreaming && exchange.isClosed;
    if (exchange.knows(callId) && !mayBeNew) throw callTaken(callId, "has its result already");
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
      // Its start has moved along with the call.
      const isMoved = !this.#isThere(place.message);
      if (isMoved && this.#context.conversation.toolStarts.of(item.entry.id, index)) return true;
    }
    return false;
  }

  /** Of the newest message that makes such a call; of several in it, the one that was started first (R9). One whose result came in a message may never be told to have ended. */
  #runningOf(callId: string, fits: (running: Running) => boolean = () => true): Running | null {
    const all = [...this.#running].filter((one) => one.call === callId && fits(one));
    const newest = all.at(-1)?.place?.message;
    return all.find(({ place }) => place?.message === newest) ?? null;
  }

  /** Where the call of a result stands: where it stood when the tool started, or where it has come to stand since. */
  #placeOf(callId: string, running: Running | null): { message: string; index: number; name: string } | null {
    const { exchange } = this.#context.conversation;
    if (running?.place && this.#isThere(running.place.message)) return { ...running.place, name: running.name };
    const call = exchange.open(callId) ?? exchange.unheld(callId);
    if (call) return { message: call.item.entry.id, index: call.index, name: call.call.name };
    return running?.place ? { ...running.place, name: running.name } : null;
  }

  /** Another message may have taken its place, and make the same call. */
  #isThere(message: string): boolean {
    const entry = this.#context.conversation.find(message)?.entry;
    return entry !== undefined && entry.replacedBy === undefined;
  }
}
