import type { ModelMessage, ToolSet } from "ai";
import type { Session } from "holdfast";
import { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import { hasFinalAnswer } from "./final-tools.ts";
import { mutableCopy } from "./mutable-copy.ts";
import { restoreInputs } from "./open-inputs.ts";
import { finishAs, outcomeOf } from "./outcome.ts";
import { resumeTurn } from "./resume.ts";
import { runOpen } from "./run-open.ts";
import { RunRegistry } from "./run-registry.ts";
import type { Durable, DurableOptions, ToolSettings } from "./surface.ts";
import { wrapSettings } from "./wrap.ts";

/** By session, because an application may call `durable` for each turn. */
const UNWRITTEN = new WeakMap<Session<ModelMessage>, UnwrittenOutcomes>();

/**
 * Makes the runs of an AI SDK agent durable in this session. The session's dialect is `ai-sdk`. Open its store
 * with `recordsToolStarts: true`, since every start is recorded. Besides the session it remembers only which runs have
 * begun, and outcomes that could not be written for lack of space.
 */
export function durable(session: Session<ModelMessage>, options: DurableOptions = {}): Durable {
  const { dialect } = session.attributes;
  if (dialect !== "ai-sdk") {
    throw new TypeError(
      `The session has the dialect "${dialect}", but messages of the AI SDK need "ai-sdk". Create the session with the dialect "ai-sdk".`,
    );
  }
  const runs = new RunRegistry();
  const unwritten = UNWRITTEN.get(session) ?? new UnwrittenOutcomes();
  UNWRITTEN.set(session, unwritten);
  const messages = (): ModelMessage[] => restoreInputs(session.messages.map(mutableCopy), session.turn?.open ?? []);
  const self: Durable = {
    wrap: (settings) =>
      wrapSettings(settings, {
        session,
        options,
        unwritten,
        messages,
        begun: (run) => runs.add(run),
      }),
    messages,
    resume: async (tools, { calls, draft, approvals, ...settings } = {}) => {
      // Record known outcomes before telling the model that a call has none.
      await unwritten.record();
      const isFailed = session.interruption?.how.kind === "failed";
      const turn = await resumeTurn(session, { calls, draft, approvals }, { tools, rules: options });
      if (turn) await self.runOpen(tools, settings);
      if (!turn || isFailed || !hasFinalAnswer(session)) return turn;
      await turn.end();
      return null;
    },
    runOpen: async (tools: ToolSet, settings: ToolSettings = {}) => {
      await unwritten.record();
      await runOpen({ session, tools, settings, options, unwritten });
    },
    outcome: (run) => outcomeOf(run, session.turn, runs),
    finish: async (run) => {
      const { turn } = session;
      const outcome = await outcomeOf(run, turn, runs);
      return turn ? finishAs(outcome, turn) : outcome;
    },
  };
  return self;
}
