import { zstdCompressSync } from "node:zlib";
import { mixSeeds, type Random, seededRandom } from "../../../testkit/src/simulation/random.ts";
import type { Agent } from "../../src/index.ts";
import type { BaseFile } from "./corpus.ts";
import { garbage, mutateBytes, mutateLines, tedious } from "./mutate.ts";

/** One file that a reader is given. */
export interface Input {
  readonly agent: Agent;
  readonly name: string;
  readonly folder: string;
  readonly bytes: Buffer;
  /** Lines that the agent itself wrote: one that stands in the file alone can be read. */
  readonly known: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();
const LF = Buffer.from("\n");

/** Makes inputs from numbers: the same seed and index give the same bytes. */
export class Inputs {
  readonly #corpus: readonly BaseFile[];
  readonly #lines: readonly Buffer[];
  readonly #known = new Map<BaseFile, ReadonlySet<string>>();
  readonly #seed: number;

  constructor(corpus: readonly BaseFile[], seed: number) {
    this.#corpus = corpus;
    this.#seed = seed;
    this.#lines = corpus.flatMap(({ lines }) => lines ?? []);
    for (const file of corpus)
      this.#known.set(file, new Set((file.lines ?? []).map((line) => line.toString("latin1"))));
  }

  at(index: number): Input {
    const random = seededRandom(mixSeeds(this.#seed, index, Math.floor(index / 2 ** 32)));
    // By agent first: each gets as many, however many recordings it has.
    const agents = [...new Set(this.#corpus.map(({ agent }) => agent))];
    const agent = random.pick(agents);
    const files = this.#corpus.filter((file) => file.agent === agent);
    const isWhole = random.chance(0.02);
    const suitable = files.filter(({ lines }) => (lines === null) === isWhole);
    const base = random.pick(suitable.length > 0 ? suitable : files);
    const { name, folder } = base;
    if (random.chance(0.1)) return { agent, name, folder, bytes: garbage(random), known: NONE };
    if (random.chance(0.0005)) {
      const line = random.pick(base.lines ?? [base.bytes]);
      return { agent, name, folder, bytes: tedious(random, line), known: NONE };
    }
    const plain = base.lines ? this.#lineFile(base.lines, random) : base.bytes;
    let bytes = plain;
    if (base.lines === null || random.chance(0.5))
      for (let count = 1 + random.below(4); count > 0; count--) bytes = mutateBytes(bytes, random);
    const isPacked = base.isCompressed && random.chance(0.3);
    if (isPacked) bytes = zstdCompressSync(bytes);
    if (isPacked && random.chance(0.5)) bytes = mutateBytes(bytes, random);
    // Sometimes a reader gets the file of another agent.
    const isForeign = random.chance(0.03);
    const asked = isForeign ? random.pick(agents) : agent;
    return { agent: asked, name, folder, bytes, known: isPacked || isForeign ? NONE : this.#known.get(base)! };
  }

  #lineFile(lines: readonly Buffer[], random: Random): Buffer {
    const count = random.chance(0.05) ? lines.length : 1 + random.below(14);
    const from = random.below(Math.max(1, lines.length - count));
    let part = lines.slice(from, from + count);
    if (from > 0 && random.chance(0.6)) part = [lines[0]!, ...part];
    for (let changes = random.below(4); changes > 0; changes--) part = mutateLines(part, this.#lines, random);
    return Buffer.concat(part.flatMap((line) => [line, LF]));
  }
}
