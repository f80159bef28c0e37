import type { CallItem } from "../contract/item.ts";
import { type DiffRow, lineDiff } from "./line-diff.ts";
import { parsedJson, type Shape, shapeOf, shapesOf } from "./shape.ts";

/** What a call changes in a file, for people. */
export interface ShownEdit {
  readonly rows: readonly DiffRow[];
  /** The members of the input that the rows do not show. */
  readonly rest: Shape;
}

/** What different agents call the two sides of an edit. */
const SIDES: readonly (readonly [old: string, fresh: string])[] = [
  ["old", "new"],
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["oldString", "newString"],
  ["oldText", "newText"],
];
const WRITES = new Set(["write", "writefile", "create", "createfile"]);
const PATCHES = ["patch", "input", "diff"];
const PATCH = /^(?:\*\*\* Begin Patch|diff --git |--- \S|@@ )/;
/** A model can write megabytes: the rest is in the record. */
const CHARACTERS_MAX = 1_000_000;

/** The change that a call makes to a file, as a diff; null if its input shows none. Pure, never throws. */
export function editOf({ name, input }: Pick<CallItem, "name" | "input">): ShownEdit | null {
  const shape = shapeOf(typeof input === "string" ? parsedJson(input) : input);
  if (!shape) return typeof input === "string" && PATCH.test(input) ? { rows: patchRows(input), rest: {} } : null;
  const pair = sidesIn(shape);
  if (pair) return { rows: lineDiff(cut(pair.old), cut(pair.fresh)), rest: without(shape, pair.names) };
  const several = shapesOf(shape["edits"]);
  const all = several.map(sidesIn);
  if (several.length > 0 && all.every((one) => one !== null)) {
    const rows = all.flatMap(({ old, fresh }, i): DiffRow[] => [
      ...(i === 0 ? [] : [{ kind: "gap", text: "…" } as const]),
      ...lineDiff(cut(old), cut(fresh)),
    ]);
    return { rows, rest: without(shape, ["edits"]) };
  }
  const member = ["content", "file_text", "contents"].find((one) => typeof shape[one] === "string");
  if (member !== undefined && WRITES.has(name.toLowerCase().replaceAll(/[^a-z]/g, "")))
    return { rows: lineDiff("", cut(String(shape[member]))), rest: without(shape, [member]) };
  const patch = PATCHES.find((one) => typeof shape[one] === "string" && PATCH.test(String(shape[one])));
  if (patch === undefined) return null;
  return { rows: patchRows(String(shape[patch])), rest: without(shape, [patch]) };
}

interface Sides {
  readonly old: string;
  readonly fresh: string;
  readonly names: readonly string[];
}

function sidesIn(shape: Shape): Sides | null {
  for (const [one, other] of SIDES) {
    const [old, fresh] = [shape[one], shape[other]];
    if (typeof old === "string" && typeof fresh === "string") return { old, fresh, names: [one, other] };
  }
  return null;
}

/** A patch already has marks. */
function patchRows(patch: string): DiffRow[] {
  return cut(patch)
    .replace(/\n$/, "")
    .split("\n")
    .map((line): DiffRow => {
      if (/^(?:\+\+\+|---|\*\*\*|@@|diff --git|index )/.test(line)) return { kind: "gap", text: line };
      if (line.startsWith("+")) return { kind: "added", text: line.slice(1) };
      if (line.startsWith("-")) return { kind: "removed", text: line.slice(1) };
      return { kind: "same", text: line.replace(/^ /, "") };
    });
}

function cut(text: string): string {
  return text.length <= CHARACTERS_MAX ? text : text.slice(0, CHARACTERS_MAX).toWellFormed();
}

function without(shape: Shape, names: readonly string[]): Shape {
  return Object.fromEntries(Object.entries(shape).filter(([name]) => !names.includes(name)));
}
