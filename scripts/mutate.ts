import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { type ChosenMutant, runCampaign } from "./mutate/campaign.ts";
import { changesSince, rankBy } from "./mutate/changes.ts";
import { chooseByRank, randomOf } from "./mutate/choose.ts";
import { addKnown, readKnown, writeKnown } from "./mutate/known.ts";
import { isValid, type Mutant, mutantsOf } from "./mutate/mutant.ts";
import { OPERATORS } from "./mutate/operators.ts";
import { parseCount, parseRooms, type Room, roomNamed, roomOfFile, sourcesBelow } from "./mutate/rooms.ts";
import { type Judged, scoresOf, survivorText, tableOf } from "./mutate/verdict.ts";

const HELP = `npm run mutate -- [options]

Changes the source in small ways, one at a time, in a copy of the repository, and runs the tests that run the changed place. A change that
no test notices has survived: a test is missing, or the change does no harm. Ends with 1 if a room scores below the limit.

What to change:
  --rooms <names>   folders of the library, or packages, each with its own count if you like
                    (default: the library's, and the packages that stand on it)
  --file <path>     one source file instead of rooms; can be repeated
  --changed [base]  first the lines that differ from a commit, then their files, then the rest (default base: main)
  --count <n|all>   mutants per room (default: 20)
  --seed <n>        which ones; printed, so that a campaign can be repeated (default: random)
  --mutant <id>     this mutant only, by the id that a campaign prints; can be repeated
  --record <verdict> --reason <sentence>
                    with --mutant: record it as equivalent or harmless in scripts/mutate/known.json, and run nothing

How to run:
  --all-tests       run all tests of the package, not only those that run the changed place
  --jobs <n>        how many at once (default: half of the processors)
  --patience <s>    a mutant whose tests take this much longer than usual has timed out (default: 30)
  --limit <percent> the score that each room must reach (default: 95)
  --json <file>     write every verdict there as well
  --list            show the mutants, and run nothing
  --root <folder>   another repository that is laid out like this one

The operators, and how often each is drawn:
${Object.entries(OPERATORS)
  .map(([name, { weight, does }]) => `  ${name.padEnd(8)}${String(weight).padStart(3)} %  ${does}`)
  .join("\n")}

Examples:
  npm run mutate -- --rooms stores/folder:40,session:30
  npm run mutate -- --changed --count 10
  npm run mutate -- --file packages/holdfast/src/journal/lines/scan.ts --count all
  npm run mutate -- --mutant 1a2b3c4d5e --all-tests
  npm run mutate -- --mutant 1a2b3c4d5e --record harmless --reason "Only the size of a batch changes."
`;

const OPTIONS = {
  rooms: {
    type: "string",
    default:
      "journal,stores,conversation,view,admit,replace,sync,session,dialects,adapters,postgres,server,acp,web/state," +
      // Only a browser can judge what draws on a canvas (timeline/draw.ts) or cleans HTML (text/markdown.ts).
      "web/text/durations.ts,web/text/item-words.ts,web/text/visible.ts," +
      "web/timeline/lanes.ts,web/timeline/layout.ts,web/timeline/ticks.ts," +
      "web/timeline/time-scale.ts,web/timeline/words.ts",
  },
  file: { type: "string", multiple: true },
  changed: { type: "string" },
  count: { type: "string", default: "20" },
  seed: { type: "string" },
  mutant: { type: "string", multiple: true },
  record: { type: "string" },
  reason: { type: "string", default: "" },
  "all-tests": { type: "boolean", default: false },
  jobs: { type: "string", default: String(Math.max(1, availableParallelism() >> 1)) },
  patience: { type: "string", default: "30" },
  limit: { type: "string", default: "95" },
  json: { type: "string" },
  list: { type: "boolean", default: false },
  root: { type: "string", default: resolve(import.meta.dirname, "..") },
  help: { type: "boolean", default: false },
} as const;

try {
  const { values } = parseArgs({ args: withOptionalBase(process.argv.slice(2)), options: OPTIONS });
  if (values.help) process.stdout.write(HELP);
  else await run(values);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  console.error("See npm run mutate -- --help");
  process.exitCode = 2;
}

/** `--changed` may stand alone. */
function withOptionalBase(parameters: readonly string[]): string[] {
  return parameters.map((parameter, i) => {
    const next = parameters[i + 1];
    return parameter === "--changed" && (next === undefined || next.startsWith("-")) ? "--changed=main" : parameter;
  });
}

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

async function run(values: Values): Promise<void> {
  const root = resolve(values.root);
  const limit = numberOf("--limit", values.limit);
  const jobs = Math.max(1, numberOf("--jobs", values.jobs));
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : numberOf("--seed", values.seed);
  const chosen = values.mutant ? findMutants(root, values.mutant) : chooseMutants(root, values, seed);
  if (values.list || values.mutant) for (const { mutant } of chosen) console.log(`${mutant.id}  ${describe(mutant)}\n`);
  if (values.list) return;
  if (values.record !== undefined) {
    record(chosen, values);
    return;
  }
  if (!values.mutant) console.log(`${chosen.length} mutants, seed ${seed}; to repeat: ${commandOf(values, seed)}`);

  const judged: Judged[] = [];
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    process.exitCode = signal === "SIGINT" ? 130 : 143;
    console.log("\nStopping: this is the table so far.");
    stop.abort();
  };
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  await runCampaign({
    root,
    chosen,
    // Who asks for one by its id wants to see it run.
    known: values.mutant ? [] : readKnown(),
    jobs,
    allTests: values["all-tests"],
    patienceMs: numberOf("--patience", values.patience) * 1000,
    signal: stop.signal,
    onProgress: showProgress(),
    onWarning: (text) => console.log(`WARNING: ${text}`),
    onJudged: (one) => {
      judged.push(one);
      console.log(`${judged.length}/${chosen.length}  ${lineOf(one)}`);
    },
  });
  report(judged, chosen, limit / 100, stop.signal.aborted);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ seed, judged }, null, 2)}\n`);
}

function chooseMutants(root: string, values: Values, seed: number): ChosenMutant[] {
  const count = parseCount(values.count);
  const rooms: Room[] = values.file
    ? values.file.map((file) => roomOfFile(root, file, count))
    : parseRooms(values.rooms, count).map((room) => roomNamed(root, room.name, room.count));
  const rank = values.changed === undefined ? () => 0 : rankBy(changesSince(root, values.changed));
  const taken = new Set<string>();
  return rooms.flatMap(({ name, path, count: wanted }) => {
    const sources = sourcesBelow(root, path);
    const mutants = [...sources].flatMap(([file, text]) => mutantsOf(file, text));
    // Each room draws for itself, so that naming one more room does not change the others.
    const drawn = chooseByRank(mutants, rank, mutants.length, randomOf(seed, name));
    const chosen: ChosenMutant[] = [];
    for (const mutant of drawn) {
      if (chosen.length >= wanted) break;
      if (taken.has(mutant.id) || !isValid(mutant, sources.get(mutant.file)!)) continue;
      taken.add(mutant.id);
      chosen.push({ room: name, mutant });
    }
    return chosen;
  });
}

function findMutants(root: string, ids: readonly string[]): ChosenMutant[] {
  const wanted = new Set(ids.flatMap((id) => id.split(",")));
  const found: ChosenMutant[] = [];
  for (const [file, text] of sourcesBelow(root, "packages")) {
    if (!/^packages\/[^/]+\/src\//.test(file)) continue;
    for (const mutant of mutantsOf(file, text))
      if (wanted.delete(mutant.id)) found.push({ room: roomOfFile(root, file, 1).name, mutant });
  }
  if (wanted.size > 0)
    throw new Error(`There is no mutant ${[...wanted].join(", ")}: an id changes when the text of its line changes.`);
  return found;
}

function record(chosen: readonly ChosenMutant[], { mutant, record: verdict, reason }: Values): void {
  if (!mutant) throw new Error("--record needs --mutant: say which one.");
  if (verdict !== "equivalent" && verdict !== "harmless")
    throw new Error(`--record ${verdict}: use equivalent or harmless.`);
  if (!/^\S.*\.$/.test(reason)) throw new Error("--reason should be one sentence, with a full stop.");
  const mutants = chosen.map((one) => one.mutant);
  writeKnown(addKnown(readKnown(), mutants, verdict, reason));
}

function report(judged: readonly Judged[], chosen: readonly ChosenMutant[], limit: number, isPartial: boolean): void {
  const order = new Map(chosen.map(({ mutant }, i) => [mutant.id, i]));
  const sorted = judged.toSorted((a, b) => order.get(a.mutant.id)! - order.get(b.mutant.id)!);
  const survivors = sorted.filter(({ verdict }) => verdict === "survived");
  if (survivors.length > 0) console.log(`\nSurvived:\n\n${survivors.map(survivorText).join("\n\n")}`);
  const scores = scoresOf(sorted);
  if (scores.length > 0) console.log(`\n${tableOf(scores)}`);
  const below = scores.filter(({ score }) => score < limit);
  if (below.length === 0 || isPartial) return;
  console.log(`\nBelow ${limit * 100} %: ${below.map(({ room }) => room).join(", ")}`);
  process.exitCode = 1;
}

function describe({ file, line, operator, before, after }: Mutant): string {
  const marked = (mark: string, text: string): string => text.replace(/^/gm, `  ${mark} `);
  return `${file}:${line}  ${operator}\n${marked("-", before)}\n${marked("+", after)}`;
}

function lineOf({ mutant, verdict, by, ms }: Judged): string {
  const place = `${mutant.file.replace(/^packages\/(?:holdfast\/src\/)?/, "")}:${mutant.line}`;
  return `${verdict.padEnd(10)}  ${mutant.id}  ${place}  ${mutant.operator}${by === "" ? "" : `  ${by}`}  [${(ms / 1000).toFixed(0)} s]`;
}

function commandOf(values: Values, seed: number): string {
  const what = values.file ? values.file.map((file) => `--file ${file}`) : [`--rooms ${values.rooms}`];
  if (values.changed !== undefined) what.push(`--changed ${values.changed}`);
  return ["npm run mutate --", ...what, `--count ${values.count}`, `--seed ${seed}`].join(" ");
}

function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number < 0)
    throw new Error(`${option} ${text}: this is not a number.`);
  return number;
}

/** On a terminal one line that changes; elsewhere a line now and then. */
function showProgress(): (text: string) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  return (text) => {
    if (performance.now() - shownAt < (process.stdout.isTTY ? 0 : 20_000)) return;
    shownAt = performance.now();
    console.log(text);
  };
}
