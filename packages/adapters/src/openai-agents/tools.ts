import type { AsyncLocalStorage } from "node:async_hooks";
import {
  type ApplyPatchTool,
  type EditorInvocationContext,
  type FunctionTool,
  runToolOutputGuardrails,
  type ShellTool,
  type Tool,
  type ToolInputGuardrailDefinition,
  type ToolOutputGuardrailDefinition,
} from "@openai/agents";
import { ruleOf } from "../tool-rules.ts";
import { type CallItem, functionResult, type ResultItem } from "./items.ts";
import { outputText } from "./replay.ts";
import { type AgentRunLog, isSame } from "./run-log.ts";
import type { AnyAgent, DurableOptions } from "./surface.ts";

/** What the wrapped parts of an agent need. They outlive a run: an approved call runs in the next one. */
export interface Wrapping {
  readonly options: DurableOptions;
  /** Inside a tool: an agent that runs there is part of that call. */
  readonly inTool: AsyncLocalStorage<true>;
  /** Null outside of a recorded run. */
  runLog(): AgentRunLog | null;
}

/** The same tool, with a start that is durable before it runs, and an outcome that is recorded when it returns. */
export function recordTool<T extends Tool<unknown>>(tool: T, agent: AnyAgent, wrapping: Wrapping): T {
  switch (tool.type) {
    case "function":
      return recordFunction(tool, agent, wrapping) as T;
    case "shell":
      return recordShell(tool, wrapping) as T;
    case "apply_patch":
      return recordEditor(tool, wrapping) as T;
    default:
      return tool;
  }
}

type Guardrail = ToolOutputGuardrailDefinition<unknown>;
type InputGuardrail = ToolInputGuardrailDefinition<unknown>;

function recordFunction(tool: FunctionTool<unknown>, agent: AnyAgent, wrapping: Wrapping): FunctionTool<unknown> {
  const rule = ruleOf(tool.name, wrapping.options);
  const runLogOf = (): AgentRunLog | null => (wrapping.inTool.getStore() ? null : wrapping.runLog());
  const inputGuardrails = tool.inputGuardrails?.map((guardrail) => recordRefusal(guardrail, runLogOf));
  const outputGuardrails = tool.outputGuardrails?.map((guardrail) => askedOnce(guardrail, runLogOf));
  const isAgent = typeof (tool as { readonly on?: unknown }).on === "function";
  const invoke: FunctionTool<unknown>["invoke"] = async (context, input, details) => {
    const runLog = runLogOf();
    const call = details?.toolCall as Extract<CallItem, { type: "function_call" }> | undefined;
    if (!runLog || !call) return tool.invoke(context, input, details);
    const { callId } = call;
    const known = runLog.outcomeOf(callId);
    if (known) return known.value ?? (known.item.type === "function_call_result" ? outputText(known.item) : "");
    const inCall = await runLog.start(callId, rule);
    const waiting = runLog.takeWaiting(callId);
    // The SDK keeps more about a call by the identity of this object, so it cannot be a copy.
    if (waiting !== null) details!.resumeState ??= waiting;
    let output: unknown;
    try {
      output = await inCall(() => wrapping.inTool.run(true, () => tool.invoke(context, input, details)));
    } catch (error) {
      if (waiting !== null) await endUnrestored(runLog, callId, String(error));
      await runLog.end(callId, { error: error ?? "The tool failed without an error." });
      throw error;
    }
    // An agent that waits for an approval has no output yet. The SDK knows, and the next request or the end of the run
    // records what the SDK makes of it.
    if (isAgent && output === "") return output;
    if (waiting !== null) return endUnrestored(runLog, callId, output);
    const shown = await afterGuardrails(outputGuardrails, { context, agent, toolCall: call, toolOutput: output });
    if ("error" in shown) await runLog.end(callId, { error: shown.error });
    else await runLog.end(callId, { value: shown.output }, functionResult(call, shown.output));
    return output;
  };
  return {
    ...tool,
    invoke,
    ...(inputGuardrails ? { inputGuardrails } : {}),
    ...(outputGuardrails ? { outputGuardrails } : {}),
  };
}

/** Nobody has decided yet, so an agent that has an output instead of waiting again could not be restored. */
async function endUnrestored(runLog: AgentRunLog, callId: string, output: unknown): Promise<string> {
  const said = typeof output === "string" ? output : JSON.stringify(output);
  const error = `The process died while this agent waited for an approval, and the agent could not be restored. It may have taken effect. (${said})`;
  await runLog.end(callId, { error });
  return error;
}

/** What the guardrails leave of an output: nothing else may get into the journal. */
async function afterGuardrails(
  guardrails: Guardrail[] | undefined,
  given: Omit<Parameters<typeof runToolOutputGuardrails>[0], "guardrails">,
): Promise<{ readonly output: unknown } | { readonly error: string }> {
  try {
    return { output: await runToolOutputGuardrails({ ...given, guardrails: guardrails as never }) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** For a call that has an outcome: it was judged before. */
const ALLOWED = { behavior: { type: "allow" } } as const;

/** A guardrail that ends the run has decided about the call: without an outcome, `resume` would come to it again. */
function recordRefusal(guardrail: InputGuardrail, runLogOf: () => AgentRunLog | null): InputGuardrail {
  return {
    ...guardrail,
    run: async (data) => {
      const runLog = runLogOf();
      const { callId } = data.toolCall;
      if (runLog?.outcomeOf(callId)) return ALLOWED;
      const verdict = await guardrail.run(data);
      const isRefused = verdict.behavior.type === "throwException";
      if (isRefused) await runLog?.refuse(callId, `The guardrail "${guardrail.name}" refused it: it did not run.`);
      return verdict;
    },
  };
}

/** The SDK runs the guardrails later, and gets the same answer. */
function askedOnce(guardrail: Guardrail, runLogOf: () => AgentRunLog | null): Guardrail {
  const answers = new Map<string, ReturnType<Guardrail["run"]>>();
  return {
    ...guardrail,
    run: (data) => {
      const { callId } = data.toolCall;
      if (runLogOf()?.outcomeOf(callId)) return Promise.resolve(ALLOWED);
      const known = answers.get(callId);
      answers.delete(callId);
      if (known) return known;
      const answer = guardrail.run(data);
      answers.set(callId, answer);
      return answer;
    },
  };
}

type Result<K extends ResultItem["type"]> = Extract<ResultItem, { type: K }>;

function recordShell(tool: ShellTool, wrapping: Wrapping): ShellTool {
  const { shell } = tool;
  if (!shell) return tool;
  const run: typeof shell.run = async (action) => {
    const runLog = wrapping.runLog();
    const call = runLog?.callFor((one) => one.type === "shell_call" && isSame(one.action, action));
    if (!runLog || !call) return shell.run(action);
    const inCall = await runLog.start(call.callId, ruleOf(tool.name, wrapping.options));
    try {
      const result = await inCall(() => shell.run(action));
      const { output, maxOutputLength } = result;
      const shown = {
        type: "shell_call_output",
        callId: call.callId,
        output,
        maxOutputLength,
      } as Result<"shell_call_output">;
      await runLog.end(call.callId, { value: output }, shown);
      return result;
    } catch (error) {
      if (!runLog.failure) await runLog.end(call.callId, { error });
      throw error;
    }
  };
  return { ...tool, shell: { run } } as ShellTool;
}

function recordEditor(tool: ApplyPatchTool, wrapping: Wrapping): ApplyPatchTool {
  const { editor } = tool;
  type Edit<O> = (operation: O, context?: EditorInvocationContext) => ReturnType<typeof editor.createFile>;
  const recorded =
    <O>(edit: Edit<O>): Edit<O> =>
    async (operation, context) => {
      const runLog = wrapping.runLog();
      const call = runLog?.callFor((one) => one.type === "apply_patch_call" && isSame(one.operation, operation));
      if (!runLog || !call) return edit(operation, context);
      const { callId } = call;
      const inCall = await runLog.start(callId, ruleOf(tool.name, wrapping.options));
      try {
        const result = await inCall(() => edit(operation, context));
        const { status = "completed", output = "" } = result ?? {};
        const shown = { type: "apply_patch_call_output", callId, status, output } as Result<"apply_patch_call_output">;
        await runLog.end(callId, { value: output }, shown);
        return result;
      } catch (error) {
        if (!runLog.failure) await runLog.end(callId, { error });
        throw error;
      }
    };
  return {
    ...tool,
    editor: {
      createFile: recorded(editor.createFile.bind(editor)),
      updateFile: recorded(editor.updateFile.bind(editor)),
      deleteFile: recorded(editor.deleteFile.bind(editor)),
    },
  } as ApplyPatchTool;
}
