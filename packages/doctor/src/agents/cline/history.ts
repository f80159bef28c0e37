import { dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Change } from "../../contract/plan.ts";
import { type Problem, problem } from "../../contract/problem.ts";
import { fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { DocumentEntries } from "../../document/mend-document.ts";
import { documentAt, isBlank } from "../../document/read-document.ts";
import { type Door, Refused } from "../../files/door.ts";
import { historyRules, parsed } from "./format.ts";
import { SCREEN } from "./places.ts";
import { shownMessages } from "./twins.ts";

/** The list of tasks of the extension: a task that is not in it does not appear. */

const historyPath = (path: string): string => join(dirname(path), "../../state/taskHistory.json");
const TASK_CHARS_MAX = 500;

export function* historyProblems({ path, id }: SessionPlace, door: Door): Generator<Problem> {
  const file = historyPath(path);
  const place = { file, line: null, offset: null };
  try {
    const bytes = documentAt(file, door);
    if (bytes === null) return;
    const items = parsed(bytes.toString("utf8"));
    // Of a list that cannot be read, Cline shows nothing.
    if (!Array.isArray(items)) yield problem("index-missing", place, { detail: "it cannot be read" });
    else if (!items.some((item) => fieldsOf(item)["id"] === id)) yield problem("index-missing", place, { detail: id });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    yield problem("unopenable", place, { detail: error.message });
  }
}

/** Puts the task into the list, as far as its own files say what it was. */
export function historyChange(session: SessionPlace, door: Door): Change | null {
  if ([...historyProblems(session, door)].length === 0) return null;
  const path = historyPath(session.path);
  const bytes = documentAt(path, door)!;
  const item = itemOf(session, door);
  if (item === null) return null;
  const why = "adds the task to Cline's list";
  if (isBlank(bytes) || bytes.every((byte) => byte === 0)) {
    const edit = {
      offset: 0,
      length: bytes.length,
      bytes: Buffer.from(JSON.stringify([item])),
      grade: "rebuilt" as const,
      why,
    };
    return { type: "edit", path, size: bytes.length, edits: [edit] };
  }
  const history = new DocumentEntries(bytes, historyRules);
  for (const entry of history.entries)
    if (!entry.isRemoved && entry.why !== undefined && !historyRules.isRecord(entry.value)) {
      entry.isRemoved = true;
      entry.why = "removes half of an entry";
    }
  if (!history.entries.some(({ value, isRemoved }) => !isRemoved && fieldsOf(value)["id"] === session.id))
    history.entries.push({ piece: null, value: item, grade: "rebuilt", why });
  return { type: "edit", path, size: bytes.length, edits: history.edits() };
}

function itemOf({ path, id }: SessionPlace, door: Door): object | null {
  const shown = shownMessages(join(dirname(path), SCREEN), door).map(fieldsOf);
  const first = shown.find(({ say, text }) => (say === "task" || say === "text") && typeof text === "string");
  const task = textIn(first?.["text"]) ?? firstPrompt(path, door);
  if (task === null) return null;
  const cut = task.length > TASK_CHARS_MAX ? `${task.slice(0, TASK_CHARS_MAX - 3)}...` : task;
  const size = door.facts(join(dirname(path), SCREEN))?.size ?? 0;
  const ts = Number(shown.at(-1)?.["ts"] ?? id) || 0;
  return { id, ts, task: cut, tokensIn: 0, tokensOut: 0, cacheWrites: 0, cacheReads: 0, totalCost: 0, size };
}

function firstPrompt(path: string, door: Door): string | null {
  const bytes = documentAt(path, door);
  const messages = bytes === null ? undefined : parsed(bytes.toString("utf8"));
  const { content } = fieldsOf(listIn(messages)[0]);
  const text = typeof content === "string" ? content : textIn(fieldsOf(listIn(content)[0])["text"]);
  return text === null ? null : (/<task>\s*([\s\S]*?)\s*<\/task>/.exec(text)?.[1] ?? text);
}
