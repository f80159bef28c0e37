import { createHash } from "node:crypto";
import { type Edit, editsOf, type Operator } from "./operators.ts";
import { enclosingName, parse, walk } from "./syntax.ts";

/** A changed source that some test should notice. */
export interface Mutant {
  /** The same for the same text, on whatever line it is. */
  readonly id: string;
  /** From the root of the repository. */
  readonly file: string;
  readonly line: number;
  readonly operator: Operator;
  /** The functions and classes around the place. */
  readonly within: string;
  /** The whole lines around the change, and what they become. */
  readonly before: string;
  readonly after: string;
  /** 1, or more if the same text is found more than once within the same function. */
  readonly nth: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Every mutant of a file, in the order of the text. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const source = parse(file, text);
  const found: { readonly edit: Edit; readonly within: string }[] = [];
  walk(source.program, (node, ancestors) => {
    for (const edit of editsOf(node, ancestors, source)) found.push({ edit, within: enclosingName(ancestors) });
  });
  found.sort((a, b) => a.edit.start - b.edit.start || a.edit.end - b.edit.end);
  const occurrences = new Map<string, number>();
  return found.map(({ edit, within }) => {
    const { before, after } = linesAround(text, edit);
    const identity = JSON.stringify([file, edit.operator, within, before, after]);
    const nth = (occurrences.get(identity) ?? 0) + 1;
    occurrences.set(identity, nth);
    return {
      id: createHash("sha256").update(`${identity}${nth}`).digest("hex").slice(0, 10),
      file,
      line: text.slice(0, edit.start).split("\n").length,
      operator: edit.operator,
      within,
      before,
      after,
      nth,
      start: edit.start,
      end: edit.end,
      text: edit.text,
    };
  });
}

export function applyMutant({ start, end, text }: Mutant, source: string): string {
  return source.slice(0, start) + text + source.slice(end);
}

/** Whether the mutated source still parses. */
export function isValid(mutant: Mutant, source: string): boolean {
  try {
    parse(mutant.file, applyMutant(mutant, source));
    return true;
  } catch {
    // The answer is no; a mutant that is not valid is never run.
    return false;
  }
}

function linesAround(text: string, edit: Edit): { before: string; after: string } {
  const from = text.lastIndexOf("\n", edit.start - 1) + 1;
  const next = text.indexOf("\n", edit.end);
  const to = next === -1 ? text.length : next;
  return {
    before: text.slice(from, to).trim(),
    after: (text.slice(from, edit.start) + edit.text + text.slice(edit.end, to)).trim(),
  };
}
