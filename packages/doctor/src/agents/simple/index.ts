import { basename } from "node:path";
import type { Agent, SessionPlace } from "../../contract/agent.ts";
import type { Plan } from "../../contract/plan.ts";
import type { ProblemKind } from "../../contract/problem.ts";
import { fieldsOf, textIn } from "../../contract/shapes.ts";
import { ANTHROPIC } from "../../document/anthropic.ts";
import { DocumentEntries } from "../../document/mend-document.ts";
import { factsOf, parseDocument } from "../../document/parse-document.ts";
import { documentAt, isBlank, readDocument } from "../../document/read-document.ts";
import { type Door, Refused } from "../../files/door.ts";
import { change, completeMessage, mendMessages } from "../../mend/messages.ts";
import { LINE_REPAIRS } from "../../mend/plan-lines.ts";
import { isMessage, simpleFormat } from "./format.ts";

/** Simple documents, wherever they are: no program keeps them in a place of its own. */
export const simple: Agent = {
  name: "simple",
  title: "Simple JSON",
  versions: [],
  // It only carries a conversation: what its calls lack, the program that continues it adds.
  rules: { chain: "order", closesOpenCalls: true, leavesOpenCalls: true, repeatsIds: false, sequence: "none" },
  plan,
  repairs: new Set<ProblemKind>([
    ...LINE_REPAIRS,
    ...(["header-missing", "header-damaged", "call-without-result", "result-without-call"] as const),
    ...(["result-before-call", "bad-tool-input", "poisoned-result"] as const),
  ]),
  homes: () => [],

  detect({ head, isFolder }) {
    const text = Buffer.from(head).toString("utf8");
    return !isFolder && /^\ufeff?\s*\{/.test(text) && MESSAGES.test(text) ? 0.4 : 0;
  },

  *find(root, door) {
    if (door.kindOf(root) === "file") yield placeOf(root, door);
  },

  read: async (session, door) => readDocument(session.path, door, simpleFormat()),
};

const MESSAGES = /"messages"\s*:\s*\[\s*\{\s*"(?:role|content|id|timestamp|model)"\s*:/;

function placeOf(path: string, door: Door): SessionPlace {
  const place = { agent: "simple", id: basename(path).replace(/\.json$/, ""), path, parts: [] };
  try {
    const bytes = documentAt(path, door);
    if (bytes === null) return place;
    const { id, cwd } = factsOf(parseDocument(bytes, simpleFormat()));
    const folder = textIn(cwd);
    return { ...place, id: textIn(id) ?? place.id, ...(folder !== null && { folder }) };
  } catch (error) {
    if (error instanceof Refused) return place;
    throw error;
  }
}

function isNamed(block: unknown): boolean {
  const { type, id, tool_use_id } = fieldsOf(block);
  return (type !== "tool_use" || typeof id === "string") && (type !== "tool_result" || typeof tool_use_id === "string");
}

async function plan({ path }: SessionPlace, door: Door): Promise<Plan | null> {
  const bytes = documentAt(path, door);
  if (bytes === null || isBlank(bytes) || bytes.every((byte) => byte === 0)) return null;
  const lost: string[] = [];
  const document = new DocumentEntries(bytes, simpleFormat());
  for (const entry of document.entries) {
    const isCut =
      entry.piece?.state === "partial" &&
      (!isMessage(entry.value) || Object.keys(fieldsOf(entry.value)).at(-1) === "content");
    if (entry.isRemoved || !isCut) continue;
    const kept = completeMessage(entry.value, ANTHROPIC, () => null);
    lost.push("The end of a message is lost.");
    if (kept) change(entry, kept.value, "unknown", "marks where a message ends");
    else {
      entry.isRemoved = true;
      entry.why = "removes a fragment without readable text";
    }
  }
  // Calls without ids are paired by their order alone.
  if (document.entries.every(({ value }) => ANTHROPIC.blocksOf(fieldsOf(value)).every(isNamed)))
    mendMessages(document.entries, ANTHROPIC, { leavesOpenCalls: true }, (value, grade, why) => ({
      piece: null,
      value,
      grade,
      why,
    }));
  const edits = document.edits();
  return edits.length > 0 ? { changes: [{ type: "edit", path, size: bytes.length, edits }], lost } : null;
}
