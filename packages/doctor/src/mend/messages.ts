import type { Grade } from "../contract/plan.ts";
import { type Fields, fieldsOf } from "../contract/shapes.ts";
import { cleanResult } from "./clean-result.ts";
import { CUT_OFF, LOST_INPUT, LOST_RESULT } from "./words.ts";

/**
 * Repairs a conversation that is a list of messages with blocks, so that every call has an input and a result behind
 * it, and every result a call.
 */

/** A message on its way to being repaired. */
export interface MessageEntry {
  value: unknown;
  isRemoved?: boolean;
  /** Why something else is written than what is there. */
  why?: string;
  grade?: Grade;
}

/** How the messages of an agent are built. */
export interface MessageShape {
  /** What a result stands in is `user`, whatever the agent calls it. */
  roleOf(message: Fields): "user" | "assistant" | null;
  blocksOf(message: Fields): readonly unknown[];
  withBlocks(message: Fields, blocks: readonly unknown[]): Fields;
  callOf(block: unknown): { readonly id: string; readonly name: string; readonly input: unknown } | null;
  resultOf(block: unknown): { readonly call: string; readonly content: unknown } | null;
  /** Whether a block is something that was said. */
  textOf(block: unknown): string | null;
  withInput(block: unknown, input: unknown): unknown;
  withContent(block: unknown, content: unknown): unknown;
  withText(block: unknown, text: string): unknown;
  textBlock(text: string): unknown;
  resultBlock(call: string, name: string, text: string): unknown;
  /** A message with results, behind this one. */
  resultMessage(blocks: readonly unknown[], before: Fields): Fields;
}

export interface MendRules {
  /** As in `ConversationRules`. */
  readonly leavesOpenCalls: boolean;
}

/** Marks the changes that a list of messages needs, and adds messages. `made`: an entry for a message that is added. */
export function mendMessages<T extends MessageEntry>(
  entries: T[],
  shape: MessageShape,
  rules: MendRules,
  made: (value: Fields, grade: Grade, why: string) => T,
): void {
  const living = (): T[] =>
    entries.filter(({ isRemoved, value }) => !isRemoved && shape.roleOf(fieldsOf(value)) !== null);
  for (const entry of living()) mendBlocks(entry, shape);
  mendOrder(entries, living(), shape, made);
  addResults(entries, living(), shape, rules, made);
}

/** Replaces a message, and keeps the reasons for earlier changes. */
export function change(entry: MessageEntry, value: unknown, grade: Grade, why: string): void {
  entry.value = value;
  entry.why = entry.why === undefined ? why : `${entry.why}; ${why}`;
  const grades: readonly Grade[] = ["intact", "brought back", "rebuilt", "unknown"];
  entry.grade = grades[Math.max(grades.indexOf(entry.grade ?? "intact"), grades.indexOf(grade))]!;
}

function mendBlocks(entry: MessageEntry, shape: MessageShape): void {
  const message = fieldsOf(entry.value);
  let why: string | null = null;
  const blocks = shape.blocksOf(message).map((block) => {
    const call = shape.callOf(block);
    if (call && !isObject(call.input)) {
      const input = typeof call.input === "string" ? parsed(call.input) : undefined;
      why = isObject(input) ? "restores the input of a call" : "marks the input of a call as lost";
      return shape.withInput(block, isObject(input) ? input : LOST_INPUT);
    }
    const result = shape.resultOf(block);
    const clean = result && cleanResult(result.content);
    if (!clean) return block;
    why = "replaces binary output by a note";
    return shape.withContent(block, clean.content);
  });
  if (why !== null) change(entry, shape.withBlocks(message, blocks), "rebuilt", why);
}

/** Results without a call become text; those before their call move behind it. */
function mendOrder<T extends MessageEntry>(
  entries: T[],
  living: readonly T[],
  shape: MessageShape,
  made: (value: Fields, grade: Grade, why: string) => T,
): void {
  const calls = new Map<string, number>();
  for (const [at, { value }] of living.entries())
    for (const block of shape.blocksOf(fieldsOf(value))) {
      const id = shape.callOf(block)?.id;
      if (id !== undefined && !calls.has(id)) calls.set(id, at);
    }
  const moved = new Map<T, unknown[]>();
  const seen = new Set<string>();
  for (const [at, entry] of living.entries()) {
    const message = fieldsOf(entry.value);
    let why: string | null = null;
    const blocks = shape.blocksOf(message).flatMap((block) => {
      const result = shape.resultOf(block);
      if (!result) return [block];
      const call = calls.get(result.call);
      if (call === undefined) {
        why = "turns a result without its call into text";
        return [
          shape.textBlock(
            `[The call of this result was lost. holdfast doctor kept the result.]\n${plain(result.content)}`,
          ),
        ];
      }
      if (call < at || seen.has(result.call)) return [block];
      seen.add(result.call);
      why = "moves a result behind its call";
      moved.set(living[call]!, [...(moved.get(living[call]!) ?? []), block]);
      return [];
    });
    if (why === null) continue;
    if (blocks.length === 0) {
      entry.isRemoved = true;
      entry.why = why;
      entry.grade = "intact";
    } else change(entry, shape.withBlocks(message, blocks), "intact", why);
  }
  for (const [caller, blocks] of moved)
    entries.splice(
      entries.indexOf(caller) + 1,
      0,
      made(shape.resultMessage(blocks, fieldsOf(caller.value)), "intact", "moves a result behind its call"),
    );
}

interface OpenCall<T> {
  readonly caller: T;
  readonly name: string;
  readonly exchange: number;
}

/** The calls that the judge reports get a result that says it was lost. */
function addResults<T extends MessageEntry>(
  entries: T[],
  living: readonly T[],
  shape: MessageShape,
  { leavesOpenCalls }: MendRules,
  made: (value: Fields, grade: Grade, why: string) => T,
): void {
  const open = new Map<string, OpenCall<T>>();
  let exchange = 0;
  let sawResult = false;
  for (const entry of living) {
    const message = fieldsOf(entry.value);
    const role = shape.roleOf(message);
    for (const block of shape.blocksOf(message)) {
      const call = shape.callOf(block);
      const result = shape.resultOf(block);
      if (result) {
        sawResult = true;
        open.delete(result.call);
      } else if (role === "user") {
        if (leavesOpenCalls) for (const [id, each] of open) if (each.exchange === exchange) open.delete(id);
        exchange++;
      } else {
        if (sawResult || (!call && shape.textOf(block) !== null && leavesOpenCalls && open.size > 0)) exchange++;
        sawResult = false;
        if (call) open.set(call.id, { caller: entry, name: call.name, exchange });
      }
    }
  }
  for (const [id, { caller, name, exchange: when }] of open) {
    if (when === exchange) continue;
    const block = shape.resultBlock(id, name, LOST_RESULT);
    const next = living[living.indexOf(caller) + 1];
    const message = fieldsOf(next?.value);
    const why = "adds a result that says it was lost";
    // What stands there already is a message of results, or of the user.
    if (
      next &&
      shape.roleOf(message) === "user" &&
      shape.blocksOf(message).some((each) => shape.resultOf(each) !== null)
    )
      change(next, shape.withBlocks(message, [...shape.blocksOf(message), block]), "rebuilt", why);
    else
      entries.splice(
        entries.indexOf(caller) + 1,
        0,
        made(shape.resultMessage([block], fieldsOf(caller.value)), "rebuilt", why),
      );
  }
}

/**
 * What is left of a message whose end is lost, with a mark where it ends; null if nothing can be read. `rest` knows the
 * text that begins like this one, from another place.
 */
export function completeMessage(
  value: unknown,
  shape: MessageShape,
  rest: (beginning: string) => string | null,
): { readonly value: Fields; readonly isWhole: boolean } | null {
  const message = fieldsOf(value);
  const blocks = shape.blocksOf(message);
  const last = blocks.at(-1);
  if (shape.roleOf(message) === null || last === undefined) return null;
  const text = shape.textOf(last);
  if (text === null || text === "") {
    const before = blocks.slice(0, -1);
    return before.length === 0 ? null : { value: shape.withBlocks(message, before), isWhole: false };
  }
  const whole = rest(text);
  const kept = shape.withText(last, whole ?? `${text}\n${CUT_OFF}`);
  return { value: shape.withBlocks(message, [...blocks.slice(0, -1), kept]), isWhole: whole !== null };
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
const plain = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
