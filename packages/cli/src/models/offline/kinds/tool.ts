import type { Job, Step } from "../evidence/job.ts";
import { has, oneLine } from "../evidence/known.ts";

/** "use mcp__github__list_issues: {"state":"open"}": calls a tool once, whatever it does. */
export function toolJob(name: string, input: Readonly<Record<string, unknown>>): Job {
  return {
    title: `use ${name}`,
    next(known, from, before): Step {
      if (typeof before["text"] === "string")
        return { kind: "answer", text: before["text"], to: from, progress: before };
      const at = known.calls.findIndex((call, index) => index >= from && call.name === name);
      if (at < 0 && has(known, name))
        return { kind: "call", calls: [{ name, input }], thought: `I use ${name}.`, progress: {} };
      const text = at < 0 ? `There is no tool "${name}".` : `${name} said: ${oneLine(known.calls[at]!.outcome.text)}`;
      return { kind: "answer", text, to: at < 0 ? from : at + 1, progress: { text } };
    },
  };
}
