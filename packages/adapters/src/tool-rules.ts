import { type CallPolicy, decideCall, type Probe, type ResumeOptions, type Session, type ToolRule } from "holdfast";
import { toolMissing } from "holdfast/internal";

/** What an application says about its tools, by name. Each start records it, and today's word counts as well. */
export interface ToolRules {
  /**
   * "safe": running it twice does no harm, so a call that was interrupted may run again: if the rule recorded at its
   * start says so, too. Default: "never".
   */
  readonly replay?: Readonly<Record<string, "safe" | "never">>;
  /**
   * Finds out what happened to a call whose process died, for example by asking a service for the call's key (in the
   * tool: `toolCall()?.key`). It is asked before the model hears of the call. What it found is recorded; a call that
   * did not happen runs; if it cannot tell, throws or hangs, the outcome stays unknown.
   */
  readonly probe?: Readonly<Record<string, Probe>>;
  /** How long to wait for a probe, in milliseconds. Default 10,000. */
  readonly probeMs?: number;
}

/** Today's rule for one tool. The name may come from the model: what objects inherit does not count. */
export function ruleOf(name: string, { replay = {}, probe = {} }: ToolRules): Required<ToolRule> {
  const safe = Object.hasOwn(replay, name) ? replay[name] : undefined;
  return { replay: safe ?? "never", probe: Object.hasOwn(probe, name) };
}

/** The same for all tools of the program. */
export function rulesFor(names: Iterable<string>, rules: ToolRules): Readonly<Record<string, ToolRule>> {
  return Object.fromEntries([...names].map((name) => [name, ruleOf(name, rules)]));
}

/**
 * Asks the probes about the calls of the interrupted turn: those that the policy asks about, or all of them if another
 * turn is about to replace this one.
 */
export async function settle<M>(session: Session<M>, { probe, probeMs }: ToolRules, policy?: CallPolicy) {
  if (!probe || session.turn) return;
  await session.settleCalls(probe, {
    ...(probeMs === undefined ? {} : { probeMs }),
    ...(policy ? { calls: { ...policy, runs: true } } : {}),
  });
}

/**
 * Settles what can be settled, and returns what `resumeTurn` does with the calls that are left: about those that nobody
 * can tell, the model is told. Throws TOOL_MISSING, before anything runs, if a call waits for a tool.
 */
export async function settledCalls<M>(
  session: Session<M>,
  given: ResumeOptions["calls"] | undefined,
  policy: CallPolicy & Pick<Required<CallPolicy>, "tools">,
  rules: ToolRules,
): Promise<NonNullable<ResumeOptions["calls"]>> {
  await settle(session, rules, policy);
  if (given === "close" || typeof given === "function") return given;
  const tools = Object.fromEntries(
    Object.entries(policy.tools).map(([name, { replay }]) => [name, { replay: replay! }]),
  );
  const own = given === undefined ? policy : given === "rerun" ? { runs: true } : given;
  const decided = { ...own, tools };
  refuseMissing(session, decided);
  return decided;
}

/** Throws TOOL_MISSING if a call of the interrupted turn can only wait, since its tool is none of these. */
function refuseMissing<M>(
  { interruption }: Session<M>,
  policy: CallPolicy & Pick<Required<CallPolicy>, "tools">,
): void {
  const { tools } = policy;
  const missing = (interruption?.calls ?? []).filter((call) => {
    if (Object.hasOwn(tools, call.name)) return false;
    const isThere = { ...policy, tools: { ...tools, [call.name]: {} } };
    return decideCall(call, policy) === "wait" && decideCall(call, isThere) !== "wait";
  });
  if (missing.length > 0) throw missingTools(missing);
}

export function missingTools(calls: readonly { readonly id: string; readonly name: string }[]): Error {
  return toolMissing(
    [...new Set(calls.map(({ name }) => name))],
    calls.map(({ id }) => id),
  );
}

/** Why a turn was suspended whose run came to a call of a tool that the program does not have. */
export const LACKS_TOOL = "a tool is missing";
