import { reading } from "../../admit/admit.ts";
import { decideCall } from "../../view/decide-call.ts";
import { callsInDoubt } from "../../view/interruption.ts";
import type { SessionContext } from "../turn/context.ts";
import { assertProbe, type Probe, type SettleOptions } from "../turn/probe.ts";
import { settleCall } from "../turn/settle.ts";

export interface Questions {
  /** By the name of the tool. */
  readonly probes: Readonly<Record<string, Probe>>;
  readonly options: SettleOptions;
}

/** A copy of what is given to `settleCalls`, taken at the call (R19). Throws RECORD_INVALID, RECORD_NOT_JSON. */
export function questionsGiven(probes: Questions["probes"], options: SettleOptions): Questions {
  const given = reading("probes", () => ({ probes: { ...probes }, options: { ...options } }));
  for (const probe of [undefined, ...Object.values(given.probes)]) assertProbe(probe, given.options);
  return given;
}

/** Asks about every call of an interrupted turn whose outcome is unknown, all at once. Waits for each answer. */
export async function settleCalls<M>(
  context: SessionContext<M>,
  { probes, options }: Questions,
  stopped: AbortSignal,
): Promise<void> {
  const { conversation, assertOpen } = context;
  const asked = callsInDoubt(conversation).map(async (call) => {
    const probe = Object.hasOwn(probes, call.name) ? probes[call.name] : undefined;
    if (probe && (!options.calls || decideCall(call, options.calls) === "ask"))
      await settleCall(context, conversation.turns, call, probe, options, stopped, assertOpen);
  });
  const failed = (await Promise.allSettled(asked)).find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
}
