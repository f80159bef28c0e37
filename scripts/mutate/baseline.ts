import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Bits, type CoveredTest, coverageOf } from "./coverage.ts";
import type { TestEnd, TestSelection } from "./runner.ts";
import type { RunLimits } from "./runner-process.ts";
import { type Hits, probeSources, type Sandbox } from "./sandbox.ts";

/** What the tests of a package do when nothing is wrong. */
export interface Baseline {
  readonly tests: readonly CoveredTest[];
  /** Tests and files that fail without any mutant. They cannot tell anything. */
  readonly broken: readonly string[];
}

const CHUNK_FILES = 8;
const KEPT_BASELINES = 6;
/** Some simulations take a minute on a busy machine. */
const LIMITS: RunLimits = { silenceMs: 240_000, totalMs: 1_200_000 };

/** Runs all tests once on sources with probes. Several sandboxes share the work. */
export async function measure(
  sandboxes: readonly Sandbox[],
  sources: ReadonlyMap<string, string>,
  files: readonly TestSelection[],
  onProgress: (done: number, all: number) => void,
): Promise<Baseline> {
  const ends = new Map<string, TestEnd>();
  const allHits: Hits[] = [];
  const errors: string[] = [];
  const pass = async (selection: readonly TestSelection[]): Promise<void> => {
    const chunks = chunksOf(selection);
    let done = 0;
    const take = function* (): Iterable<readonly TestSelection[]> {
      for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
        yield chunk;
        done += chunk.length;
        onProgress(done, selection.length);
      }
    };
    const onTest = (test: TestEnd): void => {
      ends.set(JSON.stringify([test.file, test.name]), test);
    };
    const results = await Promise.all(sandboxes.map((sandbox) => sandbox.cover(sources, take(), LIMITS, onTest)));
    for (const result of results) {
      allHits.push(...result.hits);
      errors.push(...result.errors);
    }
  };
  await pass(files);
  // A machine under load may fail a test that is sound.
  const failed = [...ends.values()].filter(({ passed }) => !passed);
  if (failed.length > 0) {
    const again = Map.groupBy(failed, ({ file }) => file);
    await pass([...again].map(([file, [first]]) => ({ layer: first!.layer, file })));
  }
  const tests = [...ends.values()];
  return {
    tests: coverageOf(
      tests.filter(({ passed }) => passed),
      allHits,
      probeSources(sources).count,
    ),
    broken: [...tests.filter(({ passed }) => !passed).map(({ file, name }) => `${file}: ${name}`), ...errors],
  };
}

/** Files of one layer each, so that a chunk needs one worker. */
function chunksOf(files: readonly TestSelection[]): (readonly TestSelection[])[] {
  return [...Map.groupBy(files, ({ layer }) => layer).values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / CHUNK_FILES) }, (_, i) =>
      group.slice(i * CHUNK_FILES, (i + 1) * CHUNK_FILES),
    ),
  );
}

/** Depends on all sources and tests, on what is installed, and on how they are measured. */
export function baselineKey(root: string, files: readonly TestSelection[]): string {
  const hash = createHash("sha256").update(JSON.stringify([process.version, process.platform, files]));
  const add = (path: string): void => {
    if (!existsSync(path)) return;
    if (!statSync(path).isDirectory()) hash.update(path.slice(root.length)).update(readFileSync(path));
    else for (const name of readdirSync(path).sort()) if (!IGNORED.has(name)) add(join(path, name));
  };
  for (const name of ["packages", "vitest.config.ts", "package-lock.json"]) add(join(root, name));
  for (const name of ["probe.ts", "probe-setup.ts", "probes.ts"])
    hash.update(readFileSync(join(import.meta.dirname, name)));
  return hash.digest("hex").slice(0, 32);
}

const IGNORED = new Set(["node_modules", "dist", "bundle", "README.md"]);

/** Where baselines are kept from one campaign to the next. */
function cacheFolder(root: string): string {
  return join(root, "node_modules/.cache/holdfast-mutate");
}

export function readBaseline(root: string, key: string): Baseline | null {
  const path = join(cacheFolder(root), `${key}.json`);
  if (!existsSync(path)) return null;
  const { tests, broken } = JSON.parse(readFileSync(path, "utf8")) as {
    tests: (Omit<CoveredTest, "hits"> & { hits: string })[];
    broken: string[];
  };
  return { tests: tests.map((test) => ({ ...test, hits: Bits.fromJSON(test.hits) })), broken };
}

export function keepBaseline(root: string, key: string, baseline: Baseline): void {
  const folder = cacheFolder(root);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${key}.json`), JSON.stringify(baseline));
  const ages = readdirSync(folder).map((name) => ({
    path: join(folder, name),
    at: statSync(join(folder, name)).mtimeMs,
  }));
  for (const { path } of ages.sort((a, b) => b.at - a.at).slice(KEPT_BASELINES)) rmSync(path, { force: true });
}
