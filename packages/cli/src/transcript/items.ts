import type { Entry, Interruption, Reading } from "holdfast";
import { Calls, type FoundCall, type Now, OpenOnes, type Orphan, stateOf } from "./calls.ts";
import type { AnswerItem, CallItem, CallState, Item, ShownFile } from "./item.ts";
import { type ProgressPart, type Said, saidIn } from "./parts/index.ts";
import { shapeOf } from "./parts/shape.ts";

export type { Now } from "./calls.ts";

export type Readable = Pick<Reading<unknown>, "entries" | "interruption" | "attributes">;

/**
 * A conversation as people read it. Pure and total. What was made of an entry is kept with it: after one more record, the items of all others are the very same objects, and cost a look.
 *
 * What is hidden from the user is left out; what the model does not see is there, and says so (`aside`). Results stand with their calls. What had been streamed when the process
 * died is at the end, as incomplete.
 */
export function itemsOf({ entries, interruption, attributes }: Readable, now: Now = {}): Item[] {
  const { dialect } = attributes;
  const shown = entries.map((entry) => ({ entry, said: saidIn(entry.message, dialect) }));
  const calls = new Calls();
  for (const { entry, said } of shown) if (said.isTraffic) calls.add(entry, said);
  const open = new OpenOnes(interruption);
  const lastTurn = entries.at(-1)?.turn ?? 0;
  const items: Item[] = [];
  for (let at = 0; at < shown.length; ) {
    const length = dialect === "acp" ? chunksFrom(shown, at) : 1;
    const group = length === 1 ? [shown[at]!] : shown.slice(at, at + length);
    at += length;
    const { entry, said } = group[0]!;
    if (entry.metadata.hiddenFromUser === true) continue;
    const facts: unknown[] = [dialect];
    const made: MadeCalls = { calls: [], orphans: [] };
    for (const one of group.length > 1 ? group : []) facts.push(one.entry);
    if (said.isTraffic) {
      const isLive = interruption === null && entry.turn === lastTurn;
      for (const found of calls.byEntry.get(entry.id) ?? []) {
        const openCall = open.of(found);
        const state = stateOf(found, openCall, isLive, now);
        const child = openCall?.child ?? now.children?.get(found.part.id);
        facts.push(found.answer?.entry, found.answer?.part, state, found.progress.at(-1), child);
        made.calls.push({ found, state, child });
      }
      for (const orphan of calls.orphans.get(entry.id) ?? []) {
        facts.push(orphan.part);
        made.orphans.push(orphan);
      }
    }
    for (const item of kept(entry, facts, () => entryItems(group, made))) items.push(item);
  }
  if (interruption) items.push(...unfinished(interruption, entries));
  return items;
}

/** A message, and what is in it. */
interface Shown {
  readonly entry: Entry<unknown>;
  readonly said: Said;
}

interface MadeCalls {
  readonly calls: { found: FoundCall; state: CallState; child: string | undefined }[];
  readonly orphans: Orphan[];
}

const cache = new WeakMap<Entry<unknown>, { readonly facts: readonly unknown[]; readonly items: readonly Item[] }>();

function kept(entry: Entry<unknown>, facts: readonly unknown[], make: () => Item[]): readonly Item[] {
  const before = cache.get(entry);
  if (before && before.facts.length === facts.length && before.facts.every((fact, index) => fact === facts[index])) {
    return before.items;
  }
  const items = make();
  cache.set(entry, { facts, items });
  return items;
}

/** ACP streams a message as chunks, each recorded by itself: how many of them, from here on, are one. */
function chunksFrom(shown: readonly Shown[], at: number): number {
  const first = shown[at]!;
  if (!isPlainChunk(first)) return 1;
  const kind = first.said.parts[0]!.type;
  let end = at + 1;
  for (; end < shown.length; end++) {
    const { entry, said } = shown[end]!;
    if (!isPlainChunk(shown[end]!) || said.role !== first.said.role || said.parts[0]!.type !== kind) break;
    if (entry.turn !== first.entry.turn || messageId(entry) !== messageId(first.entry)) break;
  }
  return end - at;
}

function isPlainChunk({ entry, said }: Shown): boolean {
  const [part] = said.parts;
  if (said.parts.length !== 1 || !part || (part.type !== "text" && part.type !== "reasoning")) return false;
  const { synthetic, replacedBy, late, metadata } = entry;
  return synthetic === undefined && replacedBy === undefined && !late && Object.keys(metadata).length === 0;
}

function messageId({ message }: Entry<unknown>): unknown {
  const shape = shapeOf(message);
  return shapeOf(shape?.["update"])?.["messageId"] ?? shape?.["messageId"];
}

type Bare<I extends Item = Item> = I extends unknown ? Omit<I, "id" | "at" | "turn"> : never;

function entryItems(group: readonly Shown[], made: MadeCalls): Item[] {
  const { entry, said } = group[0]!;
  const parts = group.length === 1 ? said.parts : group.flatMap((one) => one.said.parts);
  const aside = asideOf(entry);
  const common = {
    at: entry.at,
    turn: entry.turn,
    ...(aside ? { aside } : {}),
    ...(Object.keys(entry.metadata).length > 0 ? { metadata: entry.metadata } : {}),
  };
  const bare: Bare[] =
    said.role === "assistant"
      ? assistantItems(entry, parts, group.length > 1, made)
      : spokenItems(entry, said.role, parts, group.length > 1);
  for (const orphan of made.orphans) bare.push(orphanItem(orphan));
  return bare.map(
    (item, index) => ({ id: index === 0 ? entry.id : `${entry.id}.${index}`, ...common, ...item }) as Item,
  );
}

function asideOf({ replacedBy, metadata, late }: Entry<unknown>): string | null {
  if (replacedBy !== undefined) return "replaced: the model is shown something else in its place";
  if (metadata.hiddenFromModel === true) return "hidden from the model";
  return late ? "came too late: the model was not shown it" : null;
}

/** What anybody but the model said. */
function spokenItems(entry: Entry<unknown>, role: Said["role"], parts: Said["parts"], isChunked: boolean): Bare[] {
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(isChunked ? "" : "\n");
  const files = parts.flatMap((part) => (part.type === "file" ? [part.file] : []));
  if (text.trim() === "" && files.length === 0) return [];
  const isPrompt = (role === "user" || role === "tool") && entry.synthetic === undefined;
  if (!isPrompt) return [{ kind: "note", text }];
  return [{ kind: "prompt", text, ...(files.length > 0 ? { files } : {}) }];
}

function assistantItems(entry: Entry<unknown>, parts: Said["parts"], isChunked: boolean, made: MadeCalls): Bare[] {
  const items: Bare[] = [];
  const model = modelOf(entry);
  const flags = { ...(model ? { model } : {}), ...(entry.incomplete ? { incomplete: true as const } : {}) };
  // Words that somebody put in the place of others are not the model's (P3).
  const isMadeUp = entry.synthetic !== undefined && !entry.incomplete;
  let next = 0;
  for (const piece of pieces(parts, isChunked ? "" : "\n\n")) {
    if (piece.kind !== "traffic") {
      const { kind, text, files } = piece;
      if (text.trim() === "" && files.length === 0) continue;
      if (isMadeUp) items.push({ kind: "note", text });
      else items.push({ kind, text, ...(files.length > 0 ? { files } : {}), ...flags });
      continue;
    }
    const call = made.calls[next];
    // Not if it only says more of a call that stands elsewhere.
    if (call?.found.part.id !== piece.call) continue;
    items.push(callItem(call));
    next += 1;
  }
  return items;
}

type Piece = { kind: AnswerItem["kind"]; text: string; files: ShownFile[] } | { kind: "traffic"; call: string };

/** Neighbours of one kind as one. A file belongs to the answer beside it. */
function pieces(parts: Said["parts"], betweenThoughts: string): Piece[] {
  const out: Piece[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if (part.type === "text" || part.type === "reasoning") {
      const kind = part.type === "text" ? "answer" : "reasoning";
      if (last?.kind === kind) last.text += kind === "reasoning" ? betweenThoughts + part.text : part.text;
      else out.push({ kind, text: part.text, files: [] });
    } else if (part.type === "file") {
      if (last?.kind === "answer") last.files.push(part.file);
      else out.push({ kind: "answer", text: "", files: [part.file] });
    } else if (part.type === "call") out.push({ kind: "traffic", call: part.id });
    else if (part.type === "progress") out.push({ kind: "traffic", call: part.call });
  }
  return out;
}

/** The model's name as the adapter records it, or as an agent wrote it into the metadata. */
function modelOf({ model, metadata }: Entry<unknown>): string | null {
  const { provider, model: named } = metadata;
  if (typeof provider === "string" && typeof named === "string")
    return named.startsWith(`${provider}/`) ? named : `${provider}/${named}`;
  return model ?? (typeof named === "string" ? named : null);
}

function callItem({ found, state, child }: MadeCalls["calls"][number]): Bare<CallItem> {
  const { part, answer, entry } = found;
  const progress: Partial<ProgressPart> = Object.assign({}, ...found.progress);
  const isHidden = answer?.entry.metadata.hiddenFromUser === true;
  const output = isHidden ? undefined : (answer?.part.text ?? (progress.text || undefined));
  const files = isHidden ? [] : (answer?.part.files ?? []);
  const own = asideOf(entry);
  const of = answer && !own ? asideOf(answer.entry) : null;
  return {
    kind: "call",
    call: part.id,
    name: progress.name ?? part.name,
    input: progress.input ?? part.input,
    state,
    ...(output === undefined ? {} : { output }),
    ...(files.length > 0 ? { files } : {}),
    ...(part.by === "provider" ? { by: "provider" } : {}),
    ...(child === undefined ? {} : { child }),
    ...(of ? { aside: `its result: ${of}` } : {}),
  };
}

function orphanItem({ entry, part }: Orphan): Bare<CallItem> {
  const { call, name = "a tool", text, failed, denied, files } = part;
  const state = denied ? "denied" : failed ? "failed" : "done";
  const why = asideOf(entry) ?? "its call is not recorded";
  return {
    kind: "call",
    call,
    name,
    input: undefined,
    state,
    output: text,
    ...(files.length > 0 ? { files } : {}),
    aside: why,
  };
}

/** What was in flight, and is in no entry. */
function unfinished(interruption: Interruption<unknown>, entries: readonly Entry<unknown>[]): Item[] {
  const { draft, calls, lastAt: at, turn } = interruption;
  const items: Item[] = [];
  if (draft && entries.at(-1)?.id !== draft.id) {
    const bare: Bare[] = [];
    const { text, reasoning } = draft;
    if (reasoning.trim() !== "") bare.push({ kind: "reasoning", text: reasoning, incomplete: true });
    if (text.trim() !== "") bare.push({ kind: "answer", text, incomplete: true });
    for (const { id, name, input } of draft.calls) {
      const started = calls.some((call) => call.message === null && call.id === id);
      const aside = "the model was cut off while it wrote this call";
      if (!started) bare.push({ kind: "call", call: id, name, input, state: "not-run", aside });
    }
    for (const [index, item] of bare.entries()) {
      items.push({ id: index === 0 ? draft.id : `${draft.id}.${index}`, at, turn, ...item });
    }
  }
  for (const { id, message, name, input, startedAt, child } of calls) {
    if (message !== null) continue;
    const aside = "it was started before its call was recorded";
    items.push({
      id: `${turn}~${id}`,
      at: startedAt ?? at,
      turn,
      kind: "call",
      call: id,
      name,
      input,
      state: "unknown",
      ...(child ? { child } : {}),
      aside,
    });
  }
  return items;
}
