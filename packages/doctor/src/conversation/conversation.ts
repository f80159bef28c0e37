import { setImmediate as pause } from "node:timers/promises";
import type { Agent, SessionPlace } from "../contract/agent.ts";
import type { ConversationView, Unit } from "../contract/record.ts";
import type { ConversationRules } from "../contract/rules.ts";
import type { Door } from "../files/door.ts";
import { type Block, blocksOf, resultContent } from "./content.ts";

/** What was said in a session, as messages of the Anthropic dialect, with reasoning that has no signature. */

export interface ConversationMessage {
  readonly role: "user" | "assistant";
  readonly content: string | Block[];
}

export interface Conversation {
  /** `main`, or the name of a sub-agent in its session. */
  readonly thread: string;
  /** The call that started it, in the main conversation. */
  readonly call: string | null;
  readonly messages: readonly ConversationMessage[];
}

export interface ReadableSession {
  readonly agent: string;
  readonly id: string;
  readonly title: string | null;
  /** The main conversation first. */
  readonly conversations: readonly Conversation[];
  /** What the dialect has no form for, in words. */
  readonly leftOut: readonly string[];
}

const PAUSE_MS = 50;

/** A record that says something, as far as its place in the conversation goes. */
interface Said {
  readonly id: string | null;
  readonly parent: string | null;
  readonly units: readonly Unit[];
}

/** Reads the conversations of a session: what the agent would show its model if it resumed it. */
export async function readConversations(agent: Agent, session: SessionPlace, door: Door): Promise<ReadableSession> {
  const threads = new Map<string, Said[]>();
  /** Of each thread: where its ids stand, for agents that write a message again as it grows. */
  const places = new Map<string, Map<string, number>>();
  const callOf = new Map<string, string | null>();
  const seen = new Set<string>();
  let title: string | null = null;
  let pausedAt = performance.now();
  for (const item of await agent.read(session, door)) {
    if (item.type !== "record") continue;
    // A long session must not hold up the others that a process keeps.
    if (performance.now() - pausedAt > PAUSE_MS) {
      await pause();
      pausedAt = performance.now();
    }
    const { id, parent, thread, units, view } = item.record;
    for (const unit of units) {
      if (unit.type === "title") title = unit.text;
      if (unit.type === "subagent") callOf.set(unit.thread, unit.call);
    }
    if (view) {
      threads.set(thread, viewed(threads.get(thread) ?? [], view()));
      places.delete(thread);
      // Its own units are those of the view, or only say that there is one.
      if (threads.get(thread)!.length > 0) continue;
    }
    // A record that stands there twice was said once.
    if (id !== null && !agent.rules.repeatsIds && seen.has(`${thread} ${id}`)) continue;
    if (id !== null) seen.add(`${thread} ${id}`);
    const said = { id, parent, units };
    const earlier = threads.get(thread) ?? [];
    if (earlier.length === 0) threads.set(thread, earlier);
    if (!agent.rules.repeatsIds || id === null) {
      earlier.push(said);
      continue;
    }
    const known = places.get(thread) ?? placesIn(earlier);
    places.set(thread, known);
    const at = known.get(id) ?? earlier.length;
    known.set(id, at);
    earlier[at] = said;
  }
  let sealed = 0;
  const conversations = [...threads].map(([thread, all]): Conversation => {
    const path = pathOf(all, agent.rules);
    const units = sinceCompaction(path, all).flatMap((said) => said.units);
    sealed += units.filter((unit) => unit.type === "reasoning" && unit.text === "").length;
    return { thread, call: callOf.get(thread) ?? null, messages: messagesOf(units) };
  });
  const spoken = conversations.filter(({ messages, thread }) => messages.length > 0 || thread === "main");
  const leftOut =
    sealed > 0 ? [`${sealed} ${sealed === 1 ? "piece" : "pieces"} of reasoning: the provider sealed the text`] : [];
  return {
    ...{ agent: agent.name, id: session.id, title, leftOut },
    conversations: spoken.toSorted((a, b) => Number(b.thread === "main") - Number(a.thread === "main")),
  };
}

function placesIn(all: readonly Said[]): Map<string, number> {
  const places = new Map<string, number>();
  for (const [at, { id }] of all.entries()) if (id !== null && !places.has(id)) places.set(id, at);
  return places;
}

/** What a record leaves of the conversation before it. */
function viewed(before: readonly Said[], view: ConversationView): Said[] {
  if (view.type === "instead") return view.said.map((said) => ({ ...said, parent: null }));
  const at = before.findIndex(({ id }) => id === view.to);
  // Gemini CLI, too, is left with nothing.
  return before.slice(0, Math.max(0, at));
}

/** The records from the beginning to the last one; where records name their parents, only those on that way. */
function pathOf(all: readonly Said[], { chain }: ConversationRules): readonly Said[] {
  if (chain === "order") return all;
  const byId = new Map<string | null, Said>(
    all.flatMap((said) => (said.id === null ? [] : [[said.id, said] as const])),
  );
  const path = new Set<Said>();
  let leaf = lastOf(all, byId);
  for (; leaf !== undefined && !path.has(leaf); leaf = leaf.parent === null ? undefined : byId.get(leaf.parent))
    path.add(leaf);
  // Results of a parallel batch hang on their own calls, beside the way.
  const calls = new Set(
    [...path].flatMap(({ units }) => units.flatMap((unit) => (unit.type === "call" ? unit.id : []))),
  );
  return all.filter(
    (said) => path.has(said) || said.units.some((unit) => unit.type === "result" && calls.has(unit.call)),
  );
}

/** The last record that says something. A result hangs on its own call: the calls that were made with it come after. */
function lastOf(all: readonly Said[], byId: ReadonlyMap<string | null, Said>): Said | undefined {
  const leaf = all.findLast(({ id, units }) => id !== null && units.some(isSpeech));
  const call = leaf?.units.every(({ type }) => type === "result") ? byId.get(leaf.parent) : undefined;
  if (!call) return leaf;
  let last = call;
  for (const said of all)
    if (said.id !== null && said.parent === last.id && said.units.some(({ type }) => type === "call")) last = said;
  return last === call ? leaf : last;
}

const isSpeech = ({ type }: Unit): boolean => type !== "title" && type !== "system" && type !== "subagent";

/** What the model is still shown: the last summary, what was retained beside it, and all that came later. */
function sinceCompaction(path: readonly Said[], all: readonly Said[]): readonly Said[] {
  const compactions = path.map(({ units }) => units.findLast((unit) => unit.type === "compaction"));
  const last = compactions.findLastIndex((unit) => unit !== undefined && unit.summary !== null);
  if (last < 0) return path;
  const retained = new Set(compactions.slice(0, last + 1).findLast((unit) => unit?.retained)?.retained);
  const kept = all.filter(({ id }) => id !== null && retained.has(id));
  return [path[last]!, ...kept, ...path.slice(last + 1)];
}

const thinkingOf = (thinking: string): Block[] => (thinking === "" ? [] : [{ type: "thinking", thinking }]);

function messagesOf(units: readonly Unit[]): ConversationMessage[] {
  const messages: { readonly role: "user" | "assistant"; readonly content: Block[] }[] = [];
  const add = (role: "user" | "assistant", blocks: readonly Block[]): void => {
    const last = messages.at(-1);
    if (blocks.length === 0) return;
    if (last?.role === role) last.content.push(...blocks);
    else messages.push({ role, content: [...blocks] });
  };
  const open = new Set<string>();
  const answered = new Set<string>();
  for (const unit of units) {
    if (unit.type === "user") add("user", blocksOf(unit.content));
    else if (unit.type === "assistant") add("assistant", blocksOf(unit.content));
    // Without its signature, which holds for the agent's own requests.
    else if (unit.type === "reasoning") add("assistant", thinkingOf(unit.text));
    else if (unit.type === "compaction") add("user", blocksOf(unit.summary));
    else if (unit.type === "call") {
      const input = typeof unit.input === "object" && unit.input !== null ? unit.input : { input: unit.input };
      open.add(unit.id);
      answered.delete(unit.id);
      add("assistant", [{ type: "tool_use", id: unit.id, name: unit.name, input }]);
    } else if (unit.type === "result") {
      const { content, isError, call } = unit;
      const result = { type: "tool_result", tool_use_id: call, content: resultContent(content), is_error: isError };
      // Said again by the agent for its own sake: the first one counts.
      if (answered.has(call)) continue;
      // A result whose call is gone can only be quoted.
      if (!open.delete(call)) add("user", blocksOf(content));
      else {
        answered.add(call);
        add("user", [result]);
      }
    }
  }
  return messages;
}
