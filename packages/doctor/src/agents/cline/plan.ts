import { basename, dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Change, Grade, Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import { ANTHROPIC } from "../../document/anthropic.ts";
import { DocumentEntries, type DocumentEntry, documentText } from "../../document/mend-document.ts";
import type { DocumentRules } from "../../document/parse-document.ts";
import { documentAt, isBlank } from "../../document/read-document.ts";
import type { Door } from "../../files/door.ts";
import { madeUuid } from "../../mend/entries.ts";
import { change, mendMessages } from "../../mend/messages.ts";
import { isScreenMessage, screenFormat, sessionFormat, type TwinMessage, taskFormat } from "./format.ts";
import { Gaps, lostOf, messageOf } from "./gaps.ts";
import { historyChange } from "./history.ts";
import { API, isListAt, isOfCommand, manifestOf, SCREEN } from "./places.ts";
import { twinsOf } from "./twins.ts";

/** What makes Cline load the session whole again. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const lost: string[] = [];
  const { path, parts } = session;
  const isTask = isListAt(path, door);
  const twins = twinsOf(session, door);
  const main = conversationChange(session, path, isTask, twins, door, lost);
  const others = parts.filter(isOfCommand).map((part) => conversationChange(session, part, false, [], door, lost));
  const screen = basename(path) === API ? [screenChange(session, door, lost), historyChange(session, door)] : [];
  const changes = [main, ...others, ...screen].filter((each) => each !== null);
  return changes.length > 0 ? { changes, lost } : null;
}

function conversationChange(
  session: SessionPlace,
  path: string,
  isTask: boolean,
  twins: readonly TwinMessage[],
  door: Door,
  lost: string[],
): Change | null {
  const bytes = documentAt(path, door);
  const rules: DocumentRules = isTask ? taskFormat : sessionFormat;
  const facts = isTask ? {} : factsFor(session, door);
  const isEmpty = bytes === null || isBlank(bytes) || bytes.every((byte) => byte === 0);
  const document = isEmpty ? null : new DocumentEntries(bytes, rules);
  if (document === null || (isTask && document.entries.length === 0)) {
    if (!twins.some(({ role }) => role === "assistant")) return null;
    lost.push(...lostOf(twins));
    const messages = twins.map((twin, at) => (isTask ? messageOf(twin) : withId(messageOf(twin), session.id, at)));
    const text = Buffer.from(documentText(rules.list, facts, messages, isTask ? 0 : 2));
    return written(path, bytes, text, "brought back", "brings the conversation back from where Cline repeats it");
  }
  const { entries } = document;
  removeDoubles(entries);
  const fill = new Gaps(entries, twins, lost, (message, at) => (isTask ? message : withId(message, session.id, at)));
  fill.complete();
  fill.insert(document.isBeginningLost);
  const made = (value: Fields, grade: Grade, why: string): DocumentEntry => ({
    ...{ piece: null, grade, why },
    value: isTask ? value : { id: idOf(session.id, JSON.stringify(value)), ...value },
  });
  mendMessages(entries, ANTHROPIC, { leavesOpenCalls: true }, made);
  return edited(path, bytes!, document.edits(facts));
}

/** What `<id>.messages.json` says of itself. */
function factsFor({ path, id }: SessionPlace, door: Door): Fields {
  const { ended_at, started_at } = manifestOf(path, door);
  return {
    version: 1,
    updated_at: textIn(ended_at ?? started_at) ?? new Date(0).toISOString(),
    agent: "lead",
    sessionId: id,
  };
}

/** Messages that stand in the file twice in a row. */
function removeDoubles(entries: readonly DocumentEntry[]): void {
  const first = new Map<string, string>();
  for (const entry of entries) {
    const id = entry.isRemoved ? null : (taskFormat.understand(entry.value)?.id ?? null);
    if (id === null) continue;
    const text = JSON.stringify(entry.value);
    const known = first.get(id);
    first.set(id, known ?? text);
    if (known === text) {
      entry.isRemoved = true;
      entry.grade = "intact";
      entry.why = "removes the second copy of a message";
    } else if (known !== undefined && typeof fieldsOf(entry.value)["id"] === "string")
      change(entry, { ...fieldsOf(entry.value), id: idOf(id, text) }, "rebuilt", "gives a message an id of its own");
  }
}

const withId = (message: Fields, session: string, at: number): Fields => ({
  id: idOf(session, String(at), JSON.stringify(message)),
  ...message,
});

const idOf = (...from: readonly string[]): string => `msg_${madeUuid(...from).slice(0, 8)}`;

/** What the user is shown: repaired, or made from the conversation. */
function screenChange({ path, id }: SessionPlace, door: Door, lost: string[]): Change | null {
  const file = join(dirname(path), SCREEN);
  const bytes = documentAt(file, door);
  if (bytes === null || isBlank(bytes) || bytes.every((byte) => byte === 0)) {
    const conversation = documentAt(path, door);
    if (conversation === null) return null;
    const shown = shownOf(new DocumentEntries(conversation, taskFormat).entries, Number(id) || 0);
    if (shown.length === 0) return null;
    return written(
      file,
      bytes,
      Buffer.from(JSON.stringify(shown)),
      "rebuilt",
      "makes what is shown from the conversation",
    );
  }
  const document = new DocumentEntries(bytes, screenFormat);
  for (const entry of document.entries)
    if (!entry.isRemoved && entry.piece?.state === "partial" && !isScreenMessage(entry.value)) {
      entry.isRemoved = true;
      entry.why = "removes a fragment";
      lost.push("A part of what was shown is lost; the conversation has what was said.");
    }
  return edited(file, bytes, document.edits());
}

function shownOf(entries: readonly DocumentEntry[], start: number): object[] {
  const shown: object[] = [];
  for (const { value, isRemoved } of entries) {
    const message = fieldsOf(value);
    if (isRemoved) continue;
    for (const block of ANTHROPIC.blocksOf(message)) {
      const text = ANTHROPIC.textOf(block);
      const isUser = message["role"] === "user";
      if (text === null || (isUser && text.startsWith("<environment_details>"))) continue;
      const task = /^<task>\s*([\s\S]*?)\s*<\/task>/.exec(text)?.[1];
      const say = isUser ? (shown.length === 0 ? "task" : "user_feedback") : "text";
      shown.push({ ts: start + shown.length, type: "say", say, text: task ?? text });
    }
  }
  return shown;
}

function edited(path: string, bytes: Buffer, edits: ReturnType<DocumentEntries["edits"]>): Change | null {
  return edits.length > 0 ? { type: "edit", path, size: bytes.length, edits } : null;
}

function written(path: string, old: Buffer | null, bytes: Buffer, grade: Grade, why: string): Change {
  if (old === null) return { type: "create", path, bytes, mode: 0o644, grade, why };
  return { type: "edit", path, size: old.length, edits: [{ offset: 0, length: old.length, bytes, grade, why }] };
}
