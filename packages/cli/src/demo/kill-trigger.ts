import type { ChatEvent } from "../host/host.ts";
import type { KillMoment } from "./kill-plan.ts";

/** What to do now. */
export type Trigger =
  /** Kill, after the time that this many deltas take. */
  | { readonly shoot: string; readonly thenDeltas: number }
  /** Kill when a new file appears in the session's folder. */
  | { readonly watch: string };

/** Wait for this much of the answer, so that there is something to lose. */
const WORDS = 14;

/** Follows the events of one life, and returns a trigger at the chosen moment. */
export function watchForMoment(aim: KillMoment): (event: ChatEvent) => Trigger | null {
  let count = 0;
  const agents = new Set<string>();
  return (event) => {
    switch (aim.at) {
      case "text":
        if (event.type !== "text" || ++count !== WORDS) return null;
        return { shoot: `in mid-sentence, ${WORDS} words into its answer`, thenDeltas: 0 };
      case "tools":
        // The command's first output: it has started and not finished.
        if (event.type !== "tool.output" || ++count > 1) return null;
        return { shoot: "while the command is running", thenDeltas: 0 };
      case "compaction":
        if (event.type === "compacting" && aim.part === "switch")
          return { watch: "during the compaction, as the new epoch is written" };
        if (event.type === "compacting")
          return { shoot: "during the compaction, while the model writes the summary", thenDeltas: aim.thenDeltas };
        return event.type === "replaced" ? { shoot: "right after the compaction", thenDeltas: 0 } : null;
      case "sub-agents":
        if (event.type !== "tool.started" || event.name !== "task" || agents.has(event.call)) return null;
        agents.add(event.call);
        return agents.size === 2 ? { shoot: "while two sub-agents are working", thenDeltas: aim.thenDeltas } : null;
      case "random":
        return ++count === aim.events
          ? { shoot: `at a random moment, ${aim.events} events into this life`, thenDeltas: aim.thenDeltas }
          : null;
    }
  };
}
