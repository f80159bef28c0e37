import type { ModelMessage, ToolExecutionOptions, ToolSet } from "ai";
import { dialects, errorKind, isHoldfastError, type Outcome, type Turn } from "holdfast";
import { errorOutput, modelOutput, type Output, returnedValue } from "./content.ts";
import { copied } from "./copied.ts";
import { joined } from "./model.ts";
import type { DurableOptions } from "./surface.ts";
import type { Unrecorded } from "./unrecorded.ts";

type Tool = ToolSet[string];
type Options = ToolExecutionOptions<unknown>;
type Execute = (input: unknown, options: Options) => unknown;
type ToModelOutput = NonNullable<Tool["toModelOutput"]>;

/** Whom a wrapped tool asks whether it may run, and tells of a failure that ends the run. */
export interface Gate {
  /** Throws if the call may not run. */
  callOf(toolCallId: string): {
    readonly turn: Turn<ModelMessage>;
    readonly part: { readonly providerMetadata?: unknown } | null;
  };
  fail(error: unknown): void;
  /** Fires when the run has failed: what still runs had better stop. */
  readonly stopped: AbortSignal;
  /** Where outcomes wait that found no space. */
  readonly unrecorded: Unrecorded;
}

const CUT_OFF = "It was stopped before it came to its end: what it did until then may have taken effect.";

/** The same tools, with a start that is durable before they run, and an outcome that is recorded when they return. Those without `execute` are left as they are. */
export function recordedTools(tools: ToolSet, gate: Gate, { replay = {} }: DurableOptions): ToolSet {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      if (typeof tool.execute !== "function") return [name, tool];
      const safe = Object.hasOwn(replay, name) ? replay[name] : undefined;
      return [name, recordedTool(name, tool, gate, safe ?? "never")];
    }),
  );
}

function recordedTool(name: string, tool: Tool, gate: Gate, replay: "safe" | "never"): Tool {
  const execute = (tool.execute as Execute).bind(tool);
  const outputs = new Map<string, { readonly output: unknown; readonly made: Promise<Output> }>();
  /** The application's own is asked once for each result, by whoever comes first: it may be costly, and need not answer the same twice. */
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

  /** Yields what the tool yields, and answers its result. Rejects with what the tool throws, or the store. */
  async function* recorded(input: unknown, options: Options): AsyncGenerator<unknown, unknown> {
    const { toolCallId } = options;
    const { turn, part } = gate.callOf(toolCallId);
    options.abortSignal?.throwIfAborted();
    await storing(gate, turn.toolStarted(toolCallId, { replay }));
    const signal = joined(turn.signal, gate.stopped, options.abortSignal);
    const metadata = part?.providerMetadata;
    let isOver = false;
    const end = async (outcome: Outcome, output: Output | null): Promise<void> => {
      isOver = true;
      // Copies: it may have to be recorded later, when there is space (R19).
      const shown = output && copied(shownAs(toolCallId, name, outcome, output, metadata));
      const record = (): Promise<void> =>
        shown ? turn.toolEnded(toolCallId, outcome, shown) : turn.toolEnded(toolCallId, outcome);
      try {
        await storing(gate, record());
      } catch (error) {
        if (isHoldfastError(error, "STORE_FULL")) gate.unrecorded.keep(record);
        throw error;
      }
    };
    let value: unknown;
    try {
      // Stopped while its start was being written: then it does not run.
      signal.throwIfAborted();
      // A copy: what the tool does to it would else be sent as the model's own words, and is not what is recorded (R1).
      const made = execute(copied(input), { ...options, abortSignal: signal });
      if (isIterable(made)) {
        for await (const one of made) {
          value = one;
          yield one;
        }
      } else value = await made;
      const returned = returnedValue(value);
      // What cannot be shown stops the SDK by itself; that the tool has run is recorded all the same.
      const output = await modelOutput(shape, toolCallId, input, value).catch(() => null);
      await end({ value: returned }, output);
      return value;
    } catch (error) {
      // What Holdfast refuses inside a tool ends the run: the model would only try again. What a tool runs into because it was stopped does not.
      const fault = signal.aborted ? null : errorKind(error);
      // It could not record something of its own (the process that it runs in, a sub-agent's session): how far it came is not known.
      if (fault !== "store" && !isOver) await end({ error: error ?? "unknown error" }, worded(error));
      isOver = true;
      if (fault === "store" || fault === "misuse") {
        gate.fail(error);
        failTurn(turn, error);
      }
      throw error;
    } finally {
      // After an abort the SDK hears no more of what a tool streams, and ends it where it speaks next.
      if (!isOver) await end({ error: CUT_OFF }, errorOutput(CUT_OFF));
    }
  }

  // The SDK tells by what `execute` returns whether results are streamed: here that must be known before it is called.
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
  const bind = (tools: ToolSet): Tool => recordedTool(name, caller.bind(originals(tools)), gate, replay);
  return Object.defineProperty(made, "experimental_toolCaller", { value: { ...caller, bind } });
}

const ORIGINAL = Symbol("the tool as the application made it");

/** A tool that runs others in its own course (the SDK's code mode). The SDK hides that from copies of it, and binds the others to it before each step. */
interface Caller {
  readonly experimental_toolCaller?: { readonly type: string; readonly bind: (tools: ToolSet) => Tool };
}

/** What runs in the course of a call belongs to that call, whose start is on disk: the model made no calls of their own for them. */
function originals(tools: ToolSet): ToolSet {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => [name, (tool as { [ORIGINAL]?: Tool })[ORIGINAL] ?? tool]),
  );
}

/** Null for what has no words (it holds itself): the SDK stops at it by itself. */
function worded(error: unknown): Output | null {
  try {
    return errorOutput(error);
  } catch {
    return null;
  }
}

/** What cannot be recorded, or was refused, is not for the model to hear as a tool's failure: it ends the run (P8). */
async function storing(gate: Gate, recorded: Promise<void>): Promise<void> {
  try {
    await recorded;
  } catch (error) {
    // The turn is over, and the journal is well: the next request says so.
    if (!isHoldfastError(error, "TURN_ENDED")) gate.fail(error);
    throw error;
  }
}

/** Fires the turn's signal: nothing that works on the turn is to go on. */
export function failTurn(turn: Turn<ModelMessage>, error: unknown): void {
  turn.fail(error).catch(() => {
    // The run fails with the first error. That the end of the turn could not be recorded, the next process finds out.
  });
}

/** Null where the dialect would phrase it in the same way: then it is not stored twice. */
function shownAs(
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

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return value != null && typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === "function";
}

const AsyncGeneratorFunction = async function* () {}.constructor;

function isGenerator(execute: unknown): boolean {
  return execute instanceof AsyncGeneratorFunction;
}
