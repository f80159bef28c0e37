import type { Mutant } from "./mutant.ts";
import { type Probe, probeAround } from "./probes.ts";
import type { TestEnd, TestSelection } from "./runner.ts";
import type { Hits } from "./sandbox.ts";

/** A test that passes on the unchanged source, how long it takes, and which probes it hits. */
export interface CoveredTest {
  readonly layer: string;
  readonly file: string;
  readonly name: string;
  readonly ms: number;
  readonly hits: Bits;
}

/** A set of small numbers that can be written to a file. */
export class Bits {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  static from(numbers: Iterable<number>, count: number): Bits {
    const bytes = new Uint8Array(Math.ceil(count / 8));
    for (const number of numbers) bytes[number >> 3]! |= 1 << (number & 7);
    return new Bits(bytes);
  }

  has(number: number): boolean {
    return (((this.#bytes[number >> 3] ?? 0) >> (number & 7)) & 1) === 1;
  }

  toJSON(): string {
    return Buffer.from(this.#bytes).toString("base64");
  }

  static fromJSON(text: string): Bits {
    return new Bits(Buffer.from(text, "base64"));
  }
}

/** Puts together what was hit and which tests ran. What ran between the tests of a file may matter to each of them. */
export function coverageOf(tests: readonly TestEnd[], hits: readonly Hits[], probeCount: number): CoveredTest[] {
  const numbersOf = Map.groupBy(hits, ({ file, name }) => keyOf(file, name));
  const found = (file: string | null, name: string | null): readonly number[] =>
    (numbersOf.get(keyOf(file, name)) ?? []).flatMap(({ hits: numbers }) => numbers);
  const anywhere = found(null, null);
  const between = new Map<string, readonly number[]>();
  return tests.map(({ layer, file, name, ms }) => {
    if (!between.has(file)) between.set(file, found(file, null));
    const numbers = [...anywhere, ...between.get(file)!, ...found(file, name)];
    return { layer, file, name, ms, hits: Bits.from(numbers, probeCount) };
  });
}

/**
 * The tests that can notice a mutant: the fastest layer first, and the fastest file first in each. A module is loaded
 * once for all tests, so what runs at that time counts for all of them. `whole` are files whose tests do not pass one
 * by one.
 */
export function testsFor(
  mutant: Mutant,
  probes: readonly Probe[],
  tests: readonly CoveredTest[],
  layers: readonly string[],
  whole: ReadonlySet<string>,
): { readonly selection: TestSelection[]; readonly tests: readonly CoveredTest[] } {
  const probe = probeAround(probes, mutant.start, mutant.end);
  const isOfModule = probe === probes[0];
  const hit = isOfModule ? tests : tests.filter(({ hits }) => hits.has(probe.number));
  const files = new Set(hit.map(({ file }) => file));
  const chosen = tests.filter(
    (test) => files.has(test.file) && (whole.has(test.file) || isOfModule || test.hits.has(probe.number)),
  );
  const byFile = [...Map.groupBy(chosen, ({ file }) => file).values()];
  const rank = ([first]: readonly CoveredTest[]): number => layers.indexOf(first!.layer);
  byFile.sort((a, b) => rank(a) - rank(b) || totalMs(a) - totalMs(b));
  const selection = byFile.map((group) => {
    const { layer, file } = group[0]!;
    return { layer, file, ...(!whole.has(file) && { names: [...new Set(group.map(({ name }) => name))] }) };
  });
  return { selection, tests: chosen };
}

export function totalMs(tests: readonly { readonly ms: number }[]): number {
  return tests.reduce((sum, { ms }) => sum + ms, 0);
}

function keyOf(file: string | null, name: string | null): string {
  return JSON.stringify([file, name]);
}
