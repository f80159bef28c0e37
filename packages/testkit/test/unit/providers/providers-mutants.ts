import { expect } from "vitest";
import type { Violation } from "../../../src/providers/index.ts";

type Item = Readonly<Record<string, unknown>>;

export interface Mutant {
  readonly name: string;
  readonly list: readonly Item[];
}

/** How to make the edits of one provider. */
export interface Edits {
  /** The key under which a message holds its parts; without it messages are edited as a whole only. */
  readonly parts?: string;
  /** Put between two messages. */
  readonly message: Item;
  /** Put between two parts of a message. */
  readonly text?: Item;
  readonly empty?: Item;
}

/** Every list that one edit makes of this one: drop, double, swap with the next, insert. */
function editList(list: readonly Item[], label: string, inserts: readonly (readonly [string, Item])[]): Mutant[] {
  const mutants: Mutant[] = [];
  for (const [i, item] of list.entries()) {
    mutants.push({ name: `drop ${label}${i}`, list: list.toSpliced(i, 1) });
    mutants.push({ name: `double ${label}${i}`, list: list.toSpliced(i, 0, item) });
    const next = list[i + 1];
    if (next) mutants.push({ name: `swap ${label}${i}`, list: list.toSpliced(i, 2, next, item) });
  }
  for (let i = 0; i <= list.length; i++) {
    for (const [what, item] of inserts) {
      mutants.push({ name: `${what} before ${label}${i}`, list: list.toSpliced(i, 0, item) });
    }
  }
  return mutants;
}

/** Every conversation that one edit makes of this one. */
export function mutantsOf(list: readonly Item[], edits: Edits): Mutant[] {
  const mutants = editList(list, "", [["message", edits.message]]);
  if (edits.parts === undefined) return mutants;
  const key = edits.parts;
  const inserts: [string, Item][] = [];
  if (edits.text) inserts.push(["text", edits.text]);
  if (edits.empty) inserts.push(["empty", edits.empty]);
  for (const [i, message] of list.entries()) {
    const parts = message[key];
    if (!Array.isArray(parts)) continue;
    for (const { name, list: edited } of editList(parts, `${i}.`, inserts)) {
      mutants.push({ name, list: list.with(i, { ...message, [key]: edited }) });
    }
  }
  return mutants;
}

/**
 * Every mutant is refused, but for those that are named with the reason why the provider accepts them: `drop 0 2.1`
 * stands for `drop 0` and `drop 2.1`. A name that is not accepted is an error too, so that the list says what the
 * validator does.
 */
export function expectRefused(
  mutants: readonly Mutant[],
  validate: (list: readonly Item[]) => readonly Violation[],
  harmless: Readonly<Record<string, readonly string[]>>,
): void {
  const accepted = mutants.filter(({ list }) => validate(list).length === 0).map(({ name }) => name);
  expect(accepted.sort()).toEqual(Object.values(harmless).flat().flatMap(namesIn).sort());
}

function namesIn(short: string): string[] {
  const words = short.split(" ");
  const edit = words.filter((word) => !/^[0-9.]+$/.test(word)).join(" ");
  return words.filter((word) => /^[0-9.]+$/.test(word)).map((place) => `${edit} ${place}`);
}

export function rulesOf(violations: readonly Violation[]): string[] {
  return [...new Set(violations.map(({ rule }) => rule))];
}
