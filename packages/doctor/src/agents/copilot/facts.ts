import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import type { LineEntries } from "../../mend/entries.ts";

/** What the events say of the session, for what is built again beside them. */
export interface SessionFacts {
  readonly cwd: string | null;
  readonly firstPrompt: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
}

export function factsOf(lines: LineEntries): SessionFacts {
  let facts: SessionFacts = { cwd: null, firstPrompt: null, startedAt: null, endedAt: null };
  for (const entry of lines.living) {
    const { data, timestamp }: Fields = fieldsOf(lines.valueOf(entry));
    const cwd = textIn(fieldsOf(fieldsOf(data)["context"])["cwd"]);
    const prompt = entry.kind === "user.message" && entry.thread === "main" ? textIn(fieldsOf(data)["content"]) : null;
    const at = textIn(timestamp);
    facts = {
      cwd: facts.cwd ?? cwd,
      firstPrompt: facts.firstPrompt ?? prompt,
      startedAt: facts.startedAt ?? at,
      endedAt: at ?? facts.endedAt,
    };
  }
  return facts;
}
