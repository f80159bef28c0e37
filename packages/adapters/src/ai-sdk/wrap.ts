import type { ModelMessage } from "ai";
import type { Session } from "holdfast";
import { Approvals } from "./approvals.ts";
import { joined, recordedModel } from "./model.ts";
import { type Answer, RunState } from "./run.ts";
import type { DurableOptions, Prompted, Settings } from "./surface.ts";
import { recordedTools } from "./tools.ts";
import type { Unrecorded } from "./unrecorded.ts";

/** What a wrapper needs to know of its session. */
interface Place {
  readonly session: Session<ModelMessage>;
  readonly options: DurableOptions;
  readonly unrecorded: Unrecorded;
  messages(): ModelMessage[];
  /** A run begins, or may. */
  begun(run: RunState): void;
}

type Callback = (event: unknown) => unknown;

/** What is read here of what `prepareStep` is given. */
interface StepOptions {
  readonly messages: ModelMessage[];
  readonly stepNumber: number;
  readonly experimental_steeringMessages?: readonly ModelMessage[];
}

/** And of what it answers. */
interface PreparedStep {
  readonly model?: Settings["model"];
  readonly messages?: readonly ModelMessage[];
  readonly toolsContext?: unknown;
  readonly runtimeContext?: unknown;
}

/** The settings that are read here, of the three kinds that there are. */
interface Known extends Settings {
  readonly prompt?: unknown;
  readonly messages?: unknown;
  readonly abortSignal?: AbortSignal;
  readonly toolApproval?: unknown;
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
 * The settings that record. An agent keeps its settings over many calls, and a run belongs to one turn: so that each call of an agent, which asks `prepareCall` first, is made of the original settings anew. `streamText` and
 * `generateText` do not know `prepareCall`, and pass over it.
 */
export function wrapped<S extends Settings>(settings: S, place: Place): Prompted<S> {
  const original = settings as Known;
  const prepareCall = async (given: Record<string, unknown>): Promise<unknown> => {
    const call = { ...given };
    for (const key of REPLACED) {
      if (key in original) call[key] = original[key];
      else delete call[key];
    }
    // What the settings were given for want of a prompt is not the call's own.
    if (!isPrompted(original) && call["messages"] === made.messages) delete call["messages"];
    const prepared = (await original.prepareCall?.(call)) ?? call;
    return recorded(prepared as Known, place);
  };
  const made = recorded(original, place);
  return { ...made, prepareCall } as unknown as Prompted<S>;
}

/** What `recorded` puts something else in the place of, but for the messages. */
const REPLACED = [
  "model",
  "abortSignal",
  "tools",
  "toolApproval",
  "_internal",
  "prepareStep",
  "onLanguageModelCallStart",
  "onLanguageModelCallEnd",
] as const satisfies (keyof Known)[];

function recorded(settings: Known, place: Place): Known {
  const { session, options, unrecorded } = place;
  const { tools, toolApproval, _internal, toolsContext, runtimeContext } = settings;
  const approvals = Approvals.isNeeded(tools, toolApproval)
    ? new Approvals({
        tools,
        toolApproval,
        secret: settings.experimental_toolApprovalSecret,
        newId: _internal?.generateId,
      })
    : null;
  const run = new RunState(session, { unrecorded, tools, approvals, toolsContext, runtimeContext });
  place.begun(run);
  const onStart = settings.onLanguageModelCallStart ?? settings.experimental_onLanguageModelCallStart;
  const onEnd = settings.onLanguageModelCallEnd ?? settings.experimental_onLanguageModelCallEnd;
  const abortSignal = joined(run.stopped, session.turn?.signal, settings.abortSignal);
  return {
    ...settings,
    model: recordedModel(settings.model, run),
    ...(tools ? { tools: recordedTools(tools, run, options) } : {}),
    abortSignal,
    ...(isPrompted(settings) ? {} : { messages: place.messages() }),
    ...(approvals ? { toolApproval: approvals.resolve, _internal: { ..._internal, generateId: approvals.newId } } : {}),
    prepareStep: (options: StepOptions) => preparedStep(options, settings, run, place),
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

function isPrompted({ prompt, messages }: Known): boolean {
  return prompt !== undefined || messages !== undefined;
}

/**
 * Before each request. Results that found no space before are recorded, and shown in the place of what had to be said for want of them. The application may choose another model, which must record too, and other contexts. What a
 * person says by the SDK's steering is on disk before it is sent: the SDK tells that it was delivered only then.
 */
async function preparedStep(given: StepOptions, settings: Known, run: RunState, place: Place): Promise<unknown> {
  const isLate = (await run.catchUp()) && given.stepNumber === 0 && !isPrompted(settings);
  const steering = given.experimental_steeringMessages ?? [];
  const options = isLate ? { ...given, messages: [...place.messages(), ...steering] } : given;
  const step = ((await settings.prepareStep?.(options)) ?? {}) as PreparedStep;
  for (const key of ["toolsContext", "runtimeContext"] as const) {
    if (step[key] !== undefined) run.contexts = { ...run.contexts, [key]: step[key] };
  }
  const messages = step.messages ?? options.messages;
  await run.steered(steering.filter((said) => messages.some((sent) => isSame(said, sent))));
  return {
    ...step,
    ...(isLate ? { messages } : {}),
    ...(step.model === undefined ? {} : { model: recordedModel(step.model, run) }),
  };
}

/** As the SDK tells it: `prepareStep` may have made a copy, to mark it for the provider's cache. */
function isSame(said: ModelMessage, sent: ModelMessage): boolean {
  return sent === said || (sent.role === "user" && JSON.stringify(sent.content) === JSON.stringify(said.content));
}
