import type { Entry } from "holdfast";
import { defined } from "../defined.ts";
import type { FoundCall, Orphan } from "./calls.ts";
import type { AnswerItem, CallItem, CallState, Item, ShownFile } from "./item.ts";
import type { NeutralMessage, PartOf } from "./said.ts";
import { SUMMARY_HEAD, shownSummary } from "./summary.ts";

/** A message and its parts. */
export interface EntryMessage {
  readonly entry: Entry<unknown>;
  readonly said: NeutralMessage;
}

/** The calls of an entry, in their current state. */
export interface MadeCalls {
  readonly calls: readonly {
    readonly found: FoundCall;
    readonly state: CallState;
    readonly child: string | undefined;
  }[];
  readonly orphans: readonly Orphan[];
}

/** Without the members that all items of an entry share. */
export type Bare<I extends Item = Item> = I extends unknown ? Omit<I, "id" | "at" | "turn"> : never;

/** The items of an entry, or of several entries that form one message. */
export function entryItems(group: readonly EntryMessage[], made: MadeCalls): Item[] {
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
  if (replacedBy !== undefined) return "replaced: the model sees something else instead";
  if (metadata.hiddenFromModel === true) return "hidden from the model";
  return late ? "arrived too late: not shown to the model" : null;
}

/** The items of a message that is not the model's. */
function spokenItems(
  entry: Entry<unknown>,
  role: NeutralMessage["role"],
  parts: NeutralMessage["parts"],
  isChunked: boolean,
): Bare[] {
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(isChunked ? "" : "\n");
  const files = parts.flatMap((part) => (part.type === "file" ? [part.file] : []));
  if (text.trim() === "" && files.length === 0) return [];
  const isMadeUp = entry.synthetic !== undefined || text.startsWith(SUMMARY_HEAD);
  const isPrompt = (role === "user" || role === "tool") && !isMadeUp;
  if (!isPrompt) return [{ kind: "note", text: shownSummary(text) }];
  return [{ kind: "prompt", text, ...(files.length > 0 ? { files } : {}) }];
}

function assistantItems(
  entry: Entry<unknown>,
  parts: NeutralMessage["parts"],
  isChunked: boolean,
  made: MadeCalls,
): Bare[] {
  const items: Bare[] = [];
  const model = modelOf(entry);
  const flags = { ...(model ? { model } : {}), ...(entry.incomplete ? { incomplete: true as const } : {}) };
  // Replacement text is not the model's own (P3).
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
    // Not if it only adds to a call in another message.
    if (call?.found.part.id !== piece.call) continue;
    items.push(callItem(call));
    next += 1;
  }
  return items;
}

type Piece = { kind: AnswerItem["kind"]; text: string; files: ShownFile[] } | { kind: "traffic"; call: string };

/** Joins neighbours of one kind. A file belongs to the answer next to it. */
function pieces(parts: NeutralMessage["parts"], betweenThoughts: string): Piece[] {
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

/** The model's name, from the adapter's record or from the agent's metadata. */
function modelOf({ model, metadata }: Entry<unknown>): string | null {
  const { provider, model: named } = metadata;
  if (typeof provider === "string" && typeof named === "string")
    return named.startsWith(`${provider}/`) ? named : `${provider}/${named}`;
  return model ?? (typeof named === "string" ? named : null);
}

function callItem({ found, state, child }: MadeCalls["calls"][number]): Bare<CallItem> {
  const { part, answer, entry } = found;
  const progress: Partial<PartOf<"progress">> = Object.assign({}, ...found.progress);
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
    ...defined({ output }),
    ...(files.length > 0 ? { files } : {}),
    ...(part.by === "provider" ? { by: "provider" } : {}),
    ...defined({ child }),
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
