import type { ModelMessage } from "ai";
import type { Session } from "holdfast";
import type { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import { Approvals } from "./approvals.ts";
import type { StopCondition } from "./final-tools.ts";
import { joinSignals } from "./join-signals.ts";
import { recordModel } from "./model.ts";
import { type Answer, RunState } from "./run.ts";
import type { DurableOptions, Prompted, Settings } from "./surface.ts";
import { recordTools } from "./tools.ts";

/** What a wrapper needs from its session. */
interface WrapContext {
  readonly session: Session<ModelMessage>;
  readonly options: DurableOptions;
  readonly unwritten: UnwrittenOutcomes;
  messages(): ModelMessage[];
  /** A run begins, or may begin. */
  begun(run: RunState): void;
}

type Callback = (event: unknown) => unknown;

/** The parts of `prepareStep`'s argument that are read here, */
interface StepOptions {
  readonly messages: ModelMessage[];
  readonly stepNumber: number;
  readonly steps: readonly unknown[];
  readonly experimental_steeringMessages?: readonly ModelMessage[];
}

/** and of its result. */
interface PreparedStep {
  readonly model?: Settings["model"];
  readonly messages?: readonly ModelMessage[];
  readonly toolsContext?: unknown;
  readonly runtimeContext?: unknown;
}

/** The settings that are read here, of all three kinds. */
interface KnownSettings extends Settings {
  readonly prompt?: unknown;
  readonly messages?: unknown;
  readonly abortSignal?: AbortSignal;
  readonly toolApproval?: unknown;
  readonly stopWhen?: StopCondition | readonly StopCondition[];
  readonly experimental_toolApprovalSecret?: string | Uint8Array;
  readonly toolsContext?: unknown;
  readonly runtimeContext?: unknown;
  readonly prepareStep?: (options: StepOptions) => unknown;
  readonly prepareCall?: (options: Record<string, unknown>) => unknown;
  readonly onLanguageModelCallEnd?: Callback;
  readonly experimental_onLanguageModelCallEnd?: Callback;
  readonly onLanguageModelCallStart?: Callback;
  readonly experimental_onLanguageModelCallStart?: Callback;
  readonly _internal?: { readonly generateId?: () => string };
}

/**
 * The recording settings. An agent keeps its settings over many calls, but a run belongs to one turn. So each call of
 * an agent, which first asks `prepareCall`, starts again from the original settings. `streamText` and `generateText` do
 * not know `prepareCall`, and ignore it.
 */
export function wrapSettings<S extends Settings>(settings: S, context: WrapContext): Prompted<S> {
  const original = settings as KnownSettings;
  const prepareCall = async (given: Record<string, unknown>): Promise<unknown> => {
    const call = { ...given };
    for (const key of REPLACED) {
      if (key in original) call[key] = original[key];
      else delete call[key];
    }
    // Messages that were added for lack of a prompt are not the call's own.
    if (!isPrompted(original) && call["messages"] === made.messages) delete call["messages"];
    const prepared = (await original.prepareCall?.(call)) ?? call;
    return recordSettings(prepared as KnownSettings, context);
  };
  const made = recordSettings(original, context);
  return { ...made, prepareCall } as unknown as Prompted<S>;
}

/** The settings that `recordSettings` replaces, except the messages. */
const REPLACED = [
  "model",
  "abortSignal",
  "tools",
  "toolApproval",
  "_internal",
  "prepareStep",
  "onLanguageModelCallStart",
  "onLanguageModelCallEnd",
] as const satisfies (keyof KnownSettings)[];

function recordSettings(settings: KnownSettings, context: WrapContext): KnownSettings {
  const { session, options, unwritten } = context;
  const { tools, toolApproval, _internal, toolsContext, runtimeContext } = settings;
  const approvals = Approvals.isNeeded(tools, toolApproval)
    ? new Approvals({
        tools,
        toolApproval,
        secret: settings.experimental_toolApprovalSecret,
        newId: _internal?.generateId,
      })
    : null;
  const { stopWhen } = settings;
  const run = new RunState(session, { unwritten, tools, approvals, stopWhen, toolsContext, runtimeContext });
  context.begun(run);
  const onStart = settings.onLanguageModelCallStart ?? settings.experimental_onLanguageModelCallStart;
  const onEnd = settings.onLanguageModelCallEnd ?? settings.experimental_onLanguageModelCallEnd;
  const abortSignal = joinSignals(run.stopped, session.turn?.signal, settings.abortSignal);
  return {
    ...settings,
    model: recordModel(settings.model, run),
    ...(tools ? { tools: recordTools(tools, run, options) } : {}),
    abortSignal,
    ...(isPrompted(settings) ? {} : { messages: context.messages() }),
    ...(approvals ? { toolApproval: approvals.resolve, _internal: { ..._internal, generateId: approvals.newId } } : {}),
    prepareStep: (options: StepOptions) => prepareStepWith(options, settings, run, context),
    onLanguageModelCallStart: async (event) => {
      run.contexts = { ...run.contexts, messages: (event as { messages: ModelMessage[] }).messages };
      await onStart?.(event);
    },
    onLanguageModelCallEnd: async (event) => {
      await run.answered(event as Answer);
      await onEnd?.(event);
    },
  };
}

function isPrompted({ prompt, messages }: KnownSettings): boolean {
  return prompt !== undefined || messages !== undefined;
}

/**
 * Before each request. Records outcomes that were waiting for space, and shows them instead of what was said in their
 * place. The application may choose another model, which must record too, and other contexts. Steering from the SDK is
 * on disk before it is sent: the SDK reports its delivery only then.
 */
async function prepareStepWith(
  given: StepOptions,
  settings: KnownSettings,
  run: RunState,
  context: WrapContext,
): Promise<unknown> {
  run.steps = given.steps;
  const isLate = (await run.catchUp()) && given.stepNumber === 0 && !isPrompted(settings);
  const steering = given.experimental_steeringMessages ?? [];
  const options = isLate ? { ...given, messages: [...context.messages(), ...steering] } : given;
  const step = ((await settings.prepareStep?.(options)) ?? {}) as PreparedStep;
  for (const key of ["toolsContext", "runtimeContext"] as const) {
    if (step[key] !== undefined) run.contexts = { ...run.contexts, [key]: step[key] };
  }
  const messages = step.messages ?? options.messages;
  await run.steered(steering.filter((said) => messages.some((sent) => isSame(said, sent))));
  return {
    ...step,
    ...(isLate ? { messages } : {}),
    ...(step.model === undefined ? {} : { model: recordModel(step.model, run) }),
  };
}

/** Match it as the SDK reports it: `prepareStep` may have made a copy, to mark it for the provider's cache. */
function isSame(said: ModelMessage, sent: ModelMessage): boolean {
  return sent === said || (sent.role === "user" && JSON.stringify(sent.content) === JSON.stringify(said.content));
}
