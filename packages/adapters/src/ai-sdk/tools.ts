import type { ModelMessage, ToolExecutionOptions, ToolSet } from "ai";
import { dialects, errorKind, isHoldfastError, type Outcome, type ToolCall, type ToolRule, type Turn } from "holdfast";
import { runInCall } from "holdfast/internal";
import { ruleOf } from "../tool-rules.ts";
import type { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import { errorOutput, modelOutput, type Output, returnedValue } from "./content.ts";
import { joinSignals } from "./join-signals.ts";
import { mutableCopy } from "./mutable-copy.ts";
import type { DurableOptions } from "./surface.ts";

type Tool = ToolSet[string];
type Options = ToolExecutionOptions<unknown>;
type Execute = (input: unknown, options: Options) => unknown;
type ToModelOutput = NonNullable<Tool["toModelOutput"]>;

/** A wrapped tool asks it for permission to run, and reports failures that end the run. */
export interface Gate {
  /** Throws if the call may not run. */
  callOf(toolCallId: string): {
    readonly turn: Turn<ModelMessage>;
    readonly part: { readonly providerMetadata?: unknown } | null;
  };
  fail(error: unknown): void;
  /** Fires when the run has failed: running tools should stop. */
  readonly stopped: AbortSignal;
  /** Holds outcomes that could not be written for lack of space. */
  readonly unwritten: UnwrittenOutcomes;
}

const CUT_OFF = "It was stopped before it finished: what it did until then may have taken effect.";

/**
 * The same tools, with a start that is durable before they run, and an outcome that is recorded when they return. Tools
 * without `execute` stay as they are.
 */
export function recordTools(tools: ToolSet, gate: Gate, options: DurableOptions): ToolSet {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      if (typeof tool.execute !== "function") return [name, tool];
      return [name, recordTool(name, tool, gate, { rule: ruleOf(name, options), before: options.before })];
    }),
  );
}

interface StartRecord {
  readonly rule: Required<ToolRule>;
  readonly before: DurableOptions["before"] | undefined;
}

function recordTool(name: string, tool: Tool, gate: Gate, noting: StartRecord): Tool {
  const { rule } = noting;
  const execute = (tool.execute as Execute).bind(tool);
  const outputs = new Map<string, { readonly output: unknown; readonly made: Promise<Output> }>();
  /**
   * The application's own function is called once per result, by the first caller: it may be expensive, and may not
   * return the same twice.
   */
  const toModelOutput: ToModelOutput | undefined =
    tool.toModelOutput &&
    ((options: { toolCallId: string; input: unknown; output: unknown }) => {
      const known = outputs.get(options.toolCallId);
      if (known && known.output === options.output) return known.made;
      const made = Promise.resolve(tool.toModelOutput!(options as never));
      outputs.set(options.toolCallId, { output: options.output, made });
      return made;
    });
  const shape = toModelOutput ? { ...tool, toModelOutput } : tool;

  /** Yields what the tool yields, and returns its result. Rejects with the tool's error, or the store's. */
  async function* recorded(input: unknown, options: Options): AsyncGenerator<unknown, unknown> {
    const { toolCallId } = options;
    const { turn, part } = gate.callOf(toolCallId);
    options.abortSignal?.throwIfAborted();
    const before = await noting.before?.({ toolCallId, toolName: name, input: mutableCopy(input) }, rule.replay);
    const noted = before === undefined ? rule : { ...rule, before };
    const call = await storing(gate, turn.toolStarted(toolCallId, noted));
    const signal = joinSignals(turn.signal, gate.stopped, options.abortSignal);
    const metadata = part?.providerMetadata;
    let isOver = false;
    const end = async (outcome: Outcome, output: Output | null): Promise<void> => {
      isOver = true;
      // A copy: it may be recorded later, when there is space (R19).
      const shown = output && mutableCopy(shownAs(toolCallId, name, outcome, output, metadata));
      const record = (): Promise<void> =>
        shown ? turn.toolEnded(toolCallId, outcome, shown) : turn.toolEnded(toolCallId, outcome);
      try {
        await storing(gate, record());
      } catch (error) {
        if (isHoldfastError(error, "STORE_FULL")) gate.unwritten.keep(record);
        throw error;
      }
    };
    let value: unknown;
    try {
      // Stopped while its start was being written: do not run it.
      signal.throwIfAborted();
      // A copy: otherwise the SDK would send the tool's changes as the model's own words, unlike what is recorded (R1).
      const made = runInCall(call, () => execute(mutableCopy(input), { ...options, abortSignal: signal }));
      if (isIterable(made)) {
        for await (const one of readInCall(call, made)) {
          value = one;
          yield one;
        }
      } else value = await made;
      const returned = returnedValue(value);
      // The SDK fails by itself on what cannot be shown. Record anyway that the tool ran.
      const output = await modelOutput(shape, toolCallId, input, value).catch(() => null);
      await end({ value: returned }, output);
      return value;
    } catch (error) {
      // A refusal by Holdfast inside a tool ends the run: the model would only retry. An error caused by stopping does
      // not.
      const fault = signal.aborted ? null : errorKind(error);
      // The tool could not record something of its own (its process, a sub-agent's session): how far it got is unknown.
      if (fault !== "store" && !isOver) await end({ error: error ?? "unknown error" }, phraseError(error));
      // The tool's own session is handed over, and so is the call.
      if (isHoldfastError(error, "TURN_HANDED_OVER") && !isOver) await turn.toolEnded(toolCallId, { error });
      isOver = true;
      if (fault === "store" || fault === "misuse") {
        gate.fail(error);
        failTurn(turn, error);
      }
      throw error;
    } finally {
      // After an abort the SDK ignores what a tool streams, and ends the tool at its next yield.
      if (!isOver) await end({ error: CUT_OFF }, errorOutput(CUT_OFF));
    }
  }

  // The SDK decides by the return value of `execute` whether results are streamed. We must know before the call.
  const recordedExecute: Execute = isGenerator(tool.execute)
    ? (input, options) => recorded(input, options)
    : async (input, options) => {
        const results = recorded(input, options);
        for (;;) {
          const { done, value } = await results.next();
          if (done) return value;
        }
      };
  const made = { ...shape, execute: recordedExecute, [ORIGINAL]: tool } as unknown as Tool;
  const caller = (tool as Caller).experimental_toolCaller;
  if (caller?.type !== "local") return made;
  const bind = (tools: ToolSet): Tool => recordTool(name, caller.bind(originals(tools)), gate, noting);
  return Object.defineProperty(made, "experimental_toolCaller", { value: { ...caller, bind } });
}

const ORIGINAL = Symbol("the tool as the application made it");

/**
 * A tool that runs other tools (the SDK's code mode). The SDK hides that from copies of the tool, and binds the other
 * tools to it before each step.
 */
interface Caller {
  readonly experimental_toolCaller?: { readonly type: string; readonly bind: (tools: ToolSet) => Tool };
}

/** What runs inside a call belongs to that call, whose start is on disk: the model did not make separate calls. */
function originals(tools: ToolSet): ToolSet {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => [name, (tool as { [ORIGINAL]?: Tool })[ORIGINAL] ?? tool]),
  );
}

/** Null for a value that cannot be serialized (it contains itself): the SDK fails on it by itself. */
function phraseError(error: unknown): Output | null {
  try {
    return errorOutput(error);
  } catch {
    return null;
  }
}

/** The model must not see a failed record or a refusal as a tool error: it ends the run (P8). */
async function storing<T>(gate: Gate, recorded: Promise<T>): Promise<T> {
  try {
    return await recorded;
  } catch (error) {
    // The turn is over and the journal is fine: the next request reports it.
    if (!isHoldfastError(error, "TURN_ENDED")) gate.fail(error);
    throw error;
  }
}

/** Fires the turn's signal: everything that works on the turn must stop. */
export function failTurn(turn: Turn<ModelMessage>, error: unknown): void {
  turn.fail(error).catch(() => {
    // The run fails with the first error. If the end of the turn could not be recorded, the next process finds out.
  });
}

/** Null if the dialect would word it the same way: do not store it twice. */
export function shownAs(
  toolCallId: string,
  toolName: string,
  outcome: Outcome,
  output: Output,
  metadata: unknown,
): ModelMessage | null {
  const options = metadata == null ? {} : { providerOptions: metadata as never };
  const shown: ModelMessage = {
    role: "tool",
    content: [{ type: "tool-result", toolCallId, toolName, output, ...options }],
  };
  const dialect = dialects["ai-sdk"];
  const phrased = dialect.result({ id: toolCallId, name: toolName }, outcome);
  return phrased && JSON.stringify(phrased) === JSON.stringify(shown) ? null : shown;
}

/** The body of a generator runs where it is read. */
function readInCall(call: ToolCall, made: AsyncIterable<unknown>): AsyncIterable<unknown> {
  return {
    [Symbol.asyncIterator]: () => {
      const results = runInCall(call, () => made[Symbol.asyncIterator]());
      return {
        next: () => runInCall(call, () => results.next()),
        return: (value) => runInCall(call, async () => (await results.return?.(value)) ?? { done: true, value }),
      };
    },
  };
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return value != null && typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === "function";
}

const AsyncGeneratorFunction = async function* () {}.constructor;

function isGenerator(execute: unknown): boolean {
  return execute instanceof AsyncGeneratorFunction;
}
