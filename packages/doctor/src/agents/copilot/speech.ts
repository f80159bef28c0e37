import { fieldsOf, textIn } from "../../contract/shapes.ts";
import type { Entry } from "../../mend/entries.ts";
import { madeUuid } from "../../mend/entries.ts";
import { LOST_ANSWER, LOST_PROMPT } from "../../mend/words.ts";
import type { Events } from "./events.ts";
import type { Turn } from "./twins.ts";

/** Prompts and answers whose events are lost: from where Copilot repeats them, or else a note in their place. */
export function bringBackSpeech(events: Events): void {
  for (const turn of events.twins.turns) bringBackTurn(turn, events);
  bringBackSummary(events);
  for (const thread of new Set(events.lines.living.map((entry) => entry.thread))) {
    notePrompts(thread, events);
    noteAnswers(thread, events);
  }
}

const textIs = (entry: Entry, kind: string, text: string, events: Events): boolean =>
  entry.kind === kind && events.data(entry)["content"] === text;

function bringBackTurn({ prompt, answer, at }: Turn, events: Events): void {
  const main = events.thread("main");
  const said = main.find((entry) => textIs(entry, "user.message", prompt, events));
  const answered = main.find((entry) => textIs(entry, "assistant.message", answer, events));
  if (said && !answered && answer !== "") addAnswer(said, answer, events);
  else if (!said && answered && prompt !== "") addPrompt(answered, prompt, events);
  else if (!said && !answered && prompt !== "") {
    // The store's time is that of the end of an exchange.
    const within = main.findLast((entry) => idOf(entry, events) !== null && timeOf(entry, events) <= at);
    const begun = within && addPrompt(within, prompt, events);
    if (begun) {
      if (answer !== "") addAnswer(begun, answer, events);
      return;
    }
    const next = main.find((entry, index) => index > 0 && events.isHole(entry) && timeOf(entry, events) >= at);
    const last = main.at(-1);
    if (!next && !(last && events.isHole(null))) return;
    const where = next ? "before" : "behind";
    const data = { content: prompt, messageId: madeUuid("prompt", at, prompt) };
    const why = "brings back a prompt";
    const made = events.add(where, next ?? last!, "user.message", data, "brought back", why);
    if (answer === "") return;
    const reply = { messageId: madeUuid("answer", at, answer), content: answer, toolRequests: [], rte: false };
    events.add("behind", made, "assistant.message", reply, "brought back", "brings back an answer");
  }
}

/** The exchange that an event belongs to. */
function idOf(entry: Entry, events: Events): string | null {
  const id = textIn(events.data(entry)["interactionId"]);
  return id === "resume" ? null : id;
}

const timeOf = (entry: Entry, events: Events): string => String(events.fields(entry)["timestamp"]);

/** The last answer to a prompt: where a turn of the model has none, or where the events end. */
function addAnswer(said: Entry, content: string, events: Events): void {
  const main = events.thread("main");
  const from = main.indexOf(said) + 1;
  const own = idOf(said, events);
  const isNext = (entry: Entry): boolean =>
    entry.kind === "user.message" || (own !== null && ![null, own].includes(idOf(entry, events)));
  const end = main.findIndex((entry, index) => index >= from && isNext(entry));
  const exchange = main.slice(from, end < 0 ? main.length : end);
  const next = end < 0 ? null : main[end]!;
  const silent = exchange.findLast((entry) => entry.kind === "assistant.turn_end" && isSilent(entry, main));
  const isDamaged = exchange.some((entry) => events.isHole(entry)) || events.isHole(next);
  if (!silent && !isDamaged) return;
  const { interactionId } = events.data(said);
  const ids = interactionId === undefined ? {} : { interactionId };
  const data = {
    messageId: madeUuid("answer", String(said.id), content),
    ...ids,
    content,
    toolRequests: [],
    rte: false,
  };
  const last = exchange.findLast(({ kind }) => !kind.startsWith("session.")) ?? said;
  if (silent) events.add("before", silent, "assistant.message", data, "brought back", "brings back an answer");
  else events.add("behind", last, "assistant.message", data, "brought back", "brings back an answer");
}

/** Whether the model's turn that ends here has no message. */
function isSilent(end: Entry, entries: readonly Entry[]): boolean {
  const before = entries.slice(0, entries.indexOf(end)).findLast(({ kind }) => /^assistant\.(?!.*end)/.test(kind));
  return before?.kind === "assistant.turn_start";
}

/** The prompt of the exchange that this event belongs to; null if it has one. */
function addPrompt(answered: Entry, content: string, events: Events): Entry | null {
  const main = events.thread("main");
  const { interactionId } = events.data(answered);
  const first = main.find((entry) => events.data(entry)["interactionId"] === interactionId) ?? answered;
  // Another prompt began this exchange.
  if (interactionId === undefined || first.kind === "user.message") return null;
  const data = { content, messageId: madeUuid("prompt", String(first.id), content), interactionId };
  return events.add("before", first, "user.message", data, "brought back", "brings back a prompt");
}

/** Every exchange begins with a prompt. */
function notePrompts(thread: string, events: Events): void {
  const known = new Set<string>();
  for (const entry of events.thread(thread)) {
    const id = idOf(entry, events);
    if (id === null || known.has(id)) continue;
    known.add(id);
    const isBehindPrompt = entry.kind === "user.message" || !events.isHole(entry);
    if (isBehindPrompt || !/^(?:system\.message|assistant\.)/.test(entry.kind)) continue;
    const twin = thread === "main" ? events.twins.prompts.get(entry.parent ?? "")?.content : taskOf(thread, events);
    if (!twin) events.lost.push(`The prompt before line ${entry.place?.line} is lost.`);
    const data = { content: twin ?? LOST_PROMPT, messageId: madeUuid("prompt", id), interactionId: id };
    const why = twin ? "brings back a prompt" : "adds a note where a prompt was lost";
    events.add("before", entry, "user.message", data, twin ? "brought back" : "rebuilt", why);
  }
}

/** A compaction that began and did not end, but left its summary in a file. */
function bringBackSummary(events: Events): void {
  const main = events.thread("main");
  const ended = main.filter(({ kind }) => kind === "session.compaction_complete");
  const started = main.filter(({ kind }) => kind === "session.compaction_start");
  const attempt = (entry: Entry): unknown => events.data(entry)["compactionAttemptId"];
  const open = started.find((entry) => !ended.some((other) => attempt(other) === attempt(entry)));
  const done = ended.filter((entry) => events.data(entry)["success"] === true);
  const summary = open && events.twins.summary(done.length + 1);
  if (!open || !summary) return;
  const data = { success: true, compactionAttemptId: attempt(open), summaryContent: summary };
  const behind = main.slice(main.indexOf(open) + 1).findIndex(({ kind }) => !kind.startsWith("model."));
  const next = behind < 0 ? null : main[main.indexOf(open) + 1 + behind]!;
  const why = "brings back the summary of a compaction";
  if (next) events.add("before", next, "session.compaction_complete", data, "brought back", why);
  else events.add("behind", main.at(-1)!, "session.compaction_complete", data, "brought back", why);
}

/** What a sub-agent said last: the result of the call that waited for it. */
export function outcomeOf(call: string, events: Events): string | null {
  const input = fieldsOf(events.twins.calls.get(call)?.input);
  const started = events.lines.living.find(
    (entry) => entry.kind === "subagent.started" && events.data(entry)["toolCallId"] === call,
  );
  if (!started || input["mode"] !== "sync") return null;
  const thread = textIn(events.fields(started)["agentId"]) ?? "";
  const last = events.thread(thread).findLast(({ kind }) => kind === "assistant.message");
  return last && last.calls.length === 0 ? textIn(events.data(last)["content"]) : null;
}

/** What the call was answered that waited for this sub-agent: its last words. */
function resultFor(thread: string, events: Events): string | null {
  const call = callOf(thread, events);
  const input = fieldsOf(events.twins.calls.get(call ?? "")?.input);
  const result = events.lines.living.find(({ results }) => call !== null && results.includes(call));
  return result && input["mode"] === "sync" ? textIn(fieldsOf(events.data(result)["result"])["content"]) : null;
}

/** The call that started a sub-agent. */
function callOf(thread: string, events: Events): string | null {
  const started = events.lines.living.find(
    (entry) => entry.kind === "subagent.started" && events.fields(entry)["agentId"] === thread,
  );
  return started ? textIn(events.data(started)["toolCallId"]) : null;
}

/** A sub-agent is asked what the call says that started it. */
function taskOf(thread: string, events: Events): string | null {
  const call = callOf(thread, events);
  return call ? textIn(fieldsOf(events.twins.calls.get(call)?.input)["prompt"]) : null;
}

/** Every turn of the model has a message. */
function noteAnswers(thread: string, events: Events): void {
  const entries = events.thread(thread);
  let start: Entry | null = null;
  let isDamaged = false;
  let hasCalls = false;
  for (const entry of entries) {
    isDamaged ||= events.isHole(entry);
    if (entry.kind === "assistant.turn_start") [start, isDamaged, hasCalls] = [entry, false, false];
    else if (entry.kind === "assistant.message") start = null;
    else if (entry.kind.startsWith("tool.execution")) hasCalls = true;
    else if (entry.kind === "assistant.turn_end" && start && isDamaged && !hasCalls) {
      const { interactionId } = events.data(start);
      const ids = interactionId === undefined ? {} : { interactionId };
      const messageId = madeUuid("answer", String(entry.id));
      const isLast = !entries.slice(entries.indexOf(entry)).some(({ kind }) => kind === "assistant.message");
      const twin = thread !== "main" && isLast ? resultFor(thread, events) : null;
      const data = { messageId, ...ids, content: twin ?? LOST_ANSWER, toolRequests: [], rte: false };
      if (twin === null) events.lost.push(`The answer before line ${entry.place?.line} is lost.`);
      const why = twin === null ? "adds a note where an answer was lost" : "brings back an answer";
      events.add("before", entry, "assistant.message", data, twin === null ? "rebuilt" : "brought back", why);
    }
  }
}
