import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { TreeCopy } from "../tree-copy.ts";
import { applyMutant, type Mutant } from "./mutant.ts";
import { insertProbes, type Probe } from "./probes.ts";
import type { TestEnd, TestSelection } from "./runner.ts";
import { type RunLimits, RunnerProcess, type RunResult } from "./runner-process.ts";

/**
 * What a test has hit; `name` is null for what ran between the tests of a file, and `file` for a process that did not
 * know its test.
 */
export interface Hits {
  readonly file: string | null;
  readonly name: string | null;
  readonly hits: readonly number[];
}

/** A copy of the tree with a test runner that stays warm. Sources change here and nowhere else. */
export class Sandbox implements Disposable {
  readonly #copy: TreeCopy;
  /** Where its tests put their files, so that a test that was killed leaves nothing behind. */
  readonly #scratch: string;
  /** Outlives a campaign that is killed, and removes the folders. */
  readonly #remover: ChildProcess;
  readonly #layers: readonly string[];
  #runner: RunnerProcess | null = null;
  /** Files that were written since the runner has read them. */
  readonly #changed = new Set<string>();
  #isDisposed = false;

  constructor(source: string, layers: readonly string[]) {
    this.#layers = layers;
    const name = `holdfast-mutate-${randomUUID()}`;
    const root = join(tmpdir(), name);
    // What the tests prove does not depend on the disk, and memory spares them thousands of syncs.
    const isInMemory = process.env["TMPDIR"] === undefined && existsSync("/dev/shm");
    this.#scratch = join(isInMemory ? "/dev/shm" : tmpdir(), `${name}-files`);
    // Before there is anything to remove.
    this.#remover = spawn(
      process.execPath,
      [join(import.meta.dirname, "remove-sandbox.ts"), root, this.#scratch],
      // A group of its own: it does not end with Ctrl+C.
      { detached: true, stdio: ["pipe", "ignore", "ignore"] },
    );
    // Somebody may have killed it. The campaign removes its folders itself, if it is not killed too.
    this.#remover.stdin!.on("error", () => {});
    this.#copy = new TreeCopy(source, root);
    mkdirSync(this.#scratch);
    chmodSync(this.#scratch, 0o755);
  }

  listTests(): Promise<readonly TestSelection[]> {
    this.#runner ??= this.#start({ bail: true });
    return this.#runner.list();
  }

  /** Runs tests on the mutated source, up to the first one that fails. */
  async runMutated(mutant: Mutant, tests: readonly TestSelection[], limits: RunLimits): Promise<RunResult> {
    const original = readFileSync(join(this.#copy.root, mutant.file), "utf8");
    this.#write(mutant.file, applyMutant(mutant, original));
    try {
      return await this.run(tests, limits);
    } finally {
      if (!this.#isDisposed) this.#write(mutant.file, original);
    }
  }

  /** Runs tests on the source as it is, up to the first one that fails. */
  async run(tests: readonly TestSelection[], limits: RunLimits): Promise<RunResult> {
    if (this.#runner === null || this.#runner.isGone) this.#runner = this.#start({ bail: true });
    const changed = [...this.#changed];
    this.#changed.clear();
    const result = await this.#runner.run(tests, changed, limits);
    return result;
  }

  /** Runs tests on sources with probes, and tells what each has hit. */
  async cover(
    sources: ReadonlyMap<string, string>,
    chunks: AsyncIterable<readonly TestSelection[]> | Iterable<readonly TestSelection[]>,
    limits: RunLimits,
    onTest: (test: TestEnd) => void,
  ): Promise<{ readonly hits: Hits[]; readonly errors: string[] }> {
    this.#stop();
    const folder = join(this.#copy.root, ".mutate");
    mkdirSync(join(folder, "hits"), { recursive: true });
    chmodSync(join(folder, "hits"), 0o777);
    for (const name of ["probe.ts", "probe-setup.ts"])
      copyFileSync(join(import.meta.dirname, name), join(folder, name));
    const runtime = pathToFileURL(join(folder, "probe.ts")).href;
    for (const [file, text] of probeSources(sources, runtime).texts) writeFileSync(join(this.#copy.root, file), text);
    const setup = join(folder, "probe-setup.ts");
    const errors: string[] = [];
    try {
      for await (const chunk of chunks) {
        this.#runner ??= this.#start({ bail: false, setup });
        const result = await this.#runner.run(chunk, [], limits, onTest);
        errors.push(...result.errors);
        if (result.timedOut)
          errors.push(`no test ended for ${limits.silenceMs / 1000} s in ${chunk.map(({ file }) => file).join(", ")}`);
        if (this.#runner.isGone) this.#stop();
        if (this.#isDisposed) break;
      }
      return { hits: this.#isDisposed ? [] : readHits(join(folder, "hits"), this.#copy.root), errors };
    } finally {
      this.#stop();
      if (!this.#isDisposed) {
        for (const [file, text] of sources) writeFileSync(join(this.#copy.root, file), text);
        rmSync(folder, { recursive: true });
      }
    }
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#stop();
    this.#copy[Symbol.dispose]();
    rmSync(this.#scratch, { recursive: true, force: true, maxRetries: 5 });
    this.#remover.stdin!.end();
  }

  #write(file: string, text: string): void {
    writeFileSync(join(this.#copy.root, file), text);
    this.#changed.add(file);
  }

  #start(options: { readonly bail: boolean; readonly setup?: string }): RunnerProcess {
    const runner = new RunnerProcess({
      root: this.#copy.root,
      scratch: this.#scratch,
      layers: this.#layers,
      ...options,
    });
    this.#remover.stdin!.write(`${runner.pid ?? ""}\n`);
    return runner;
  }

  #stop(): void {
    if (this.#runner === null) return;
    this.#runner[Symbol.dispose]();
    this.#runner = null;
    // Its number may be another process's soon.
    this.#remover.stdin!.write("\n");
  }
}

export interface ProbedSources {
  readonly texts: ReadonlyMap<string, string>;
  readonly probes: ReadonlyMap<string, readonly Probe[]>;
  readonly count: number;
}

/** Numbers the probes of all files in the order of the map, so that a number means the same place in each sandbox. */
export function probeSources(sources: ReadonlyMap<string, string>, runtime = ""): ProbedSources {
  const texts = new Map<string, string>();
  const probes = new Map<string, readonly Probe[]>();
  let count = 0;
  for (const [file, text] of sources) {
    const probed = insertProbes(file, text, count, runtime);
    texts.set(file, probed.text);
    probes.set(file, probed.probes);
    count += probed.probes.length;
  }
  return { texts, probes, count };
}

function readHits(folder: string, root: string): Hits[] {
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const { test, hits } = JSON.parse(line) as { test: string; hits: number[] };
        if (test === "") return { file: null, name: null, hits };
        const [file, testName] = JSON.parse(test) as [string, string | null];
        return { file: relative(root, file).split(sep).join("/"), name: testName, hits };
      }),
  );
}
