import { type Baseline, baselineKey, keepBaseline, measure, readBaseline } from "./baseline.ts";
import { testsFor, totalMs } from "./coverage.ts";
import { findKnown, type KnownMutant } from "./known.ts";
import type { Mutant } from "./mutant.ts";
import type { Probe } from "./probes.ts";
import { packageOf, sourcesBelow } from "./rooms.ts";
import type { TestEnd, TestSelection } from "./runner.ts";
import type { RunResult } from "./runner-process.ts";
import { probeSources, Sandbox } from "./sandbox.ts";
import type { Judged, Verdict } from "./verdict.ts";

/** The layers whose tests judge, fastest first. The others kill real processes, need root, or compile first. */
const LAYERS = ["unit", "corpus", "conformance", "simulation"];
/** The layer of a package that runs its sources in the test's own process too, so that it judges as well. */
const FROM_SOURCE: Readonly<Record<string, string>> = { server: "end-to-end", postgres: "kill" };
/** Files of those layers that do not judge: random kills, fail-over drills, and programs in other processes. */
const NOT_JUDGING = /^packages\/postgres\/test\/kill\/(?:storm|fleet|failover|example)\.test\.ts$/;

function layersOf(packageName: string): readonly string[] {
  const more = FROM_SOURCE[packageName];
  return more === undefined ? LAYERS : [...LAYERS, more];
}

export interface ChosenMutant {
  readonly room: string;
  readonly mutant: Mutant;
}

export interface CampaignOptions {
  readonly root: string;
  readonly chosen: readonly ChosenMutant[];
  readonly known: readonly KnownMutant[];
  readonly jobs: number;
  /** Run all tests of the package, and not only those that run the mutated place. */
  readonly allTests: boolean;
  /** How long a test may take, besides five times what it takes without a mutant. */
  readonly patienceMs: number;
  /** Ends the campaign; what was judged until then is kept. */
  readonly signal: AbortSignal;
  readonly onProgress: (text: string) => void;
  readonly onWarning: (text: string) => void;
  readonly onJudged: (judged: Judged) => void;
}

/** A package's tests, and where its sources have probes. */
interface Measured {
  readonly baseline: Baseline;
  readonly probes: ReadonlyMap<string, readonly Probe[]>;
}

/** Judges mutants in copies of the tree. */
export async function runCampaign(options: CampaignOptions): Promise<void> {
  const { root, chosen, known, signal } = options;
  const unknown = chosen.filter(({ room, mutant }) => {
    const entry = findKnown(known, mutant);
    if (entry) options.onJudged({ room, mutant, verdict: entry.verdict, by: entry.reason, tests: 0, ms: 0 });
    return !entry;
  });
  if (unknown.length === 0) return;
  using sandboxes = new DisposableStack();
  const jobs = Math.min(options.jobs, unknown.length);
  const layers = [...new Set(unknown.flatMap(({ mutant }) => layersOf(packageOf(mutant.file))))];
  const places = Array.from({ length: jobs }, () => sandboxes.use(new Sandbox(root, layers)));
  // Ends the runs under way: each then answers that it is gone.
  const stop = (): void => sandboxes.dispose();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const measured = await measurePackages(options, places, unknown);
    const whole = new Set<string>();
    const soundAlone = new Map<string, boolean>();
    const queue = [...unknown];
    const work = async (place: Sandbox): Promise<void> => {
      for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
        const { room, mutant } = next;
        const start = performance.now();
        const judged = await judge(place, mutant, measured.get(packageOf(mutant.file))!, options, whole, soundAlone);
        if (!signal.aborted) options.onJudged({ room, mutant, ...judged, ms: Math.round(performance.now() - start) });
      }
    };
    await Promise.all(places.map(work));
  } catch (error) {
    // What fails once the sandboxes are gone fails because of that.
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

async function measurePackages(
  { root, onProgress, onWarning, signal }: CampaignOptions,
  places: readonly Sandbox[],
  chosen: readonly ChosenMutant[],
): Promise<Map<string, Measured>> {
  const measured = new Map<string, Measured>();
  const listed = await places[0]!.listTests();
  for (const name of new Set(chosen.map(({ mutant }) => packageOf(mutant.file)))) {
    const layers = layersOf(name);
    const files = listed.filter(
      ({ file, layer }) => file.startsWith(`packages/${name}/`) && layers.includes(layer) && !NOT_JUDGING.test(file),
    );
    const sources = sourcesBelow(root, `packages/${name}/src`);
    const key = baselineKey(root, files);
    let baseline = readBaseline(root, key);
    if (baseline === null) {
      onProgress(`${name}: running all ${files.length} test files once, to see which test runs what`);
      baseline = await measure(places, sources, files, (done, all) =>
        onProgress(`${name}: ${done} of ${all} test files`),
      );
      signal.throwIfAborted();
      keepBaseline(root, key, baseline);
    }
    for (const broken of baseline.broken) onWarning(`fails without any mutant, and is left out: ${broken}`);
    measured.set(name, { baseline, probes: probeSources(sources).probes });
  }
  return measured;
}

type Outcome = Pick<Judged, "verdict" | "by" | "tests">;

async function judge(
  place: Sandbox,
  mutant: Mutant,
  { baseline, probes }: Measured,
  { allTests, patienceMs }: CampaignOptions,
  whole: Set<string>,
  soundAlone: Map<string, boolean>,
): Promise<Outcome> {
  const places = probes.get(mutant.file)!;
  for (;;) {
    // With no probe but the module's own, every test counts as running the place.
    const { selection, tests } = testsFor(
      mutant,
      allTests ? places.slice(0, 1) : places,
      baseline.tests,
      layersOf(packageOf(mutant.file)),
      whole,
    );
    if (selection.length === 0) return { verdict: "survived", by: "", tests: 0 };
    const slowest = tests.reduce((most, { ms }) => Math.max(most, ms), 0);
    const limits = { silenceMs: patienceMs + 5 * slowest, totalMs: 2 * patienceMs + 5 * totalMs(tests) };
    const result = await place.runMutated(mutant, selection, limits);
    const witness = result.tests.find(({ passed }) => !passed);
    if (witness === undefined) return { ...outcomeWithoutWitness(result), tests: tests.length };
    if (whole.has(witness.file) || (await passesAlone(place, witness, soundAlone))) {
      const verdict: Verdict = /timed out in \d+ ?ms/i.test(witness.message) ? "timed out" : "killed";
      return {
        verdict,
        by: `${witness.file.replace(/^packages\/[^/]+\/test\//, "")}: ${witness.name}`,
        tests: tests.length,
      };
    }
    // The test needs others of its file to have run before, so its failure tells nothing. From now on the file runs as
    // a whole.
    whole.add(witness.file);
  }
}

function outcomeWithoutWitness({ timedOut, errors }: RunResult): Pick<Judged, "verdict" | "by"> {
  if (timedOut) return { verdict: "timed out", by: "the tests did not end" };
  const [error] = errors;
  return error === undefined ? { verdict: "survived", by: "" } : { verdict: "killed", by: error.split("\n")[0]! };
}

async function passesAlone(
  place: Sandbox,
  { layer, file, name }: TestEnd,
  known: Map<string, boolean>,
): Promise<boolean> {
  const key = JSON.stringify([file, name]);
  if (!known.has(key)) {
    const selection: TestSelection = { layer, file, names: [name] };
    const { tests } = await place.run([selection], { silenceMs: 240_000, totalMs: 240_000 });
    known.set(
      key,
      tests.some(({ passed }) => passed),
    );
  }
  return known.get(key)!;
}
