import type { ModelMessage, ToolSet } from "ai";
import type { Session } from "holdfast";
import { finishAs, outcomeOf } from "./outcome.ts";
import type { RunState } from "./run.ts";
import { runOpen } from "./run-open.ts";
import type { Durable, DurableOptions } from "./surface.ts";
import { wrapped } from "./wrap.ts";

/**
 * Makes the runs of an AI SDK agent durable in this session. Its dialect is `ai-sdk`; create or resume it with `intents: true`, since every start is recorded. One for each session, or one for each run: it keeps nothing
 * that is not in the session, but for which run is the newest.
 */
export function durable(session: Session<ModelMessage>, options: DurableOptions = {}): Durable {
  const { dialect } = session.attributes;
  if (dialect !== "ai-sdk") {
    throw new TypeError(
      `The session is in the dialect "${dialect}". The AI SDK's messages fit the dialect "ai-sdk": create the session with it.`,
    );
  }
  let newest: RunState | null = null;
  const messages = (): ModelMessage[] => session.messages.map((message) => structuredClone(message));
  const self: Durable = {
    wrap: (settings) =>
      wrapped(settings, {
        session,
        options,
        messages,
        begun: (run) => {
          newest = run;
        },
      }),
    messages,
    runOpen: (tools: ToolSet) => runOpen(session, tools, options),
    outcome: (run) => outcomeOf(run, newest),
    finish: async (run) => {
      const state = newest;
      const opened = session.turn;
      const outcome = await outcomeOf(run, state);
      const turn = state?.turn ?? opened;
      if (turn) await finishAs(outcome, turn);
      return outcome;
    },
  };
  return self;
}
