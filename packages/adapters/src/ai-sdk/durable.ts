import type { ModelMessage, ToolSet } from "ai";
import type { Session } from "holdfast";
import { copied } from "./copied.ts";
import { withOwnInputs } from "./open-inputs.ts";
import { finishAs, outcomeOf } from "./outcome.ts";
import { resumeTurn } from "./resume.ts";
import { runOpen } from "./run-open.ts";
import { Runs } from "./runs.ts";
import type { Durable, DurableOptions, ToolSettings } from "./surface.ts";
import { Unrecorded } from "./unrecorded.ts";
import { wrapped } from "./wrap.ts";

/** By session, since an application may make a new `durable` for each turn. */
const UNRECORDED = new WeakMap<Session<ModelMessage>, Unrecorded>();

/**
 * Makes the runs of an AI SDK agent durable in this session. Its dialect is `ai-sdk`; create or resume it with `intents: true`, since every start is recorded. It keeps nothing that is not in the session, but for
 * which runs have begun, and outcomes that found no space.
 */
export function durable(session: Session<ModelMessage>, options: DurableOptions = {}): Durable {
  const { dialect } = session.attributes;
  if (dialect !== "ai-sdk") {
    throw new TypeError(
      `The session is in the dialect "${dialect}". The AI SDK's messages fit the dialect "ai-sdk": create the session with it.`,
    );
  }
  const runs = new Runs();
  const unrecorded = UNRECORDED.get(session) ?? new Unrecorded();
  UNRECORDED.set(session, unrecorded);
  const messages = (): ModelMessage[] => withOwnInputs(session.messages.map(copied), session.turn?.open ?? []);
  const self: Durable = {
    wrap: (settings) =>
      wrapped(settings, {
        session,
        options,
        unrecorded,
        messages,
        begun: (run) => runs.add(run),
      }),
    messages,
    resume: async (tools, { calls, draft, approvals, ...settings } = {}) => {
      // What is known of a call must be recorded before the model is told that nothing is.
      await unrecorded.record();
      const turn = await resumeTurn(session, { calls, draft, approvals });
      if (turn) await self.runOpen(tools, settings);
      return turn;
    },
    runOpen: async (tools: ToolSet, settings: ToolSettings = {}) => {
      await unrecorded.record();
      await runOpen({ session, tools, settings, options, unrecorded });
    },
    outcome: (run) => outcomeOf(run, session.turn, runs),
    finish: async (run) => {
      const { turn } = session;
      const outcome = await outcomeOf(run, turn, runs);
      if (turn) await finishAs(outcome, turn);
      return outcome;
    },
  };
  return self;
}
