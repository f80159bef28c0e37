import * as fs from "node:fs";
import { join } from "node:path";
import { Bench } from "./bench.ts";
import { middleOf, passes, type Results } from "./figure.ts";
import { describeMachine, type Machine, machineLines } from "./machine.ts";
import { type Options, readOptions } from "./options.ts";
import { defaultCache } from "./peers/install.ts";
import { roster } from "./peers/roster.ts";
import { runPeers } from "./peers/run.ts";
import { agePlot, ratiosPlot } from "./plot.ts";
import { missedLines, tableLines } from "./report.ts";
import { rows } from "./rows.ts";

const HELP = `npm run bench -- [options]

Measures the journal against plain reads and writes of the same data, and sessions against the journal, side by side, and compares
the ratios with the figures that they must reach. Exits 1 when one is missed, and says which.

  --quick          smaller sizes and fewer rounds (under 3 minutes); writes no documents unless --write
  --only <row>     one row, or several: --only process --only power
                   (${rows.map((row) => row.name).join(", ")})
  --write          write docs/bench/ also after a --quick run
  --no-write       do not write docs/bench/
  --dir <folder>   where to measure (default: the temporary folder); it should be on the disk that matters
  --help

npm run bench -- --peers [options]

Compares Holdfast with other stores instead: time to store a message while the session grows, bytes written, time and memory to
resume, time to list. Needs the network the first time. Takes about 15 minutes (--quick: about 4). Exits 1 when a peer could
not be installed or failed, and says which.

  --only <peer>    one peer, or several; writes no documents unless --write
                   (${roster.map((contender) => contender.key).join(", ")})
  --cache <folder> where the peers are installed from npm (default: ${defaultCache(process.env)})
  --quick, --write, --no-write, --dir as above; the documents are docs/bench/peers.*
`;

process.exitCode = await main();

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    // An option that does not exist: the words of parseArgs are for the user, its stack is not.
    if (!(error instanceof TypeError)) throw error;
    console.error(`${error.message}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  return options.peers ? runPeers(options, progress) : run(options);
}

async function run(options: Options): Promise<number> {
  const unknown = options.only.filter((name) => !rows.some((row) => row.name === name));
  if (unknown.length > 0) {
    console.error(`There is no row ${unknown.join(", ")}. The rows are ${rows.map((row) => row.name).join(", ")}.`);
    return 2;
  }
  const wanted = rows.filter((row) => options.only.length === 0 || options.only.includes(row.name));
  const bench = new Bench({ quick: options.quick, parent: options.dir, say: progress });
  const results: Results = { figures: [], peers: [], ages: [] };
  const started = performance.now();
  const interrupted = (): void => {
    fs.rmSync(bench.folder, { recursive: true, force: true });
    process.exit(130);
  };
  process.once("SIGINT", interrupted);
  try {
    const machine = describeMachine(bench.folder);
    for (const line of machineLines(machine)) console.log(line);
    for (const row of wanted) {
      const begun = performance.now();
      await row.measure(bench, results);
      bench.clear();
      progress(`${row.name}: ${seconds(begun)} s`);
    }
    console.log();
    for (const line of tableLines(results)) console.log(line);
    console.log();
    // Documents show all of a run or nothing: figures of different days do not stand side by side.
    const whole = wanted.length === rows.length;
    if (options.write ?? (whole && !options.quick)) writeDocuments(machine, results, options.quick);
    const missed = missedLines(results.figures);
    for (const line of missed) console.log(line);
    const kept = results.figures.filter(passes).length;
    console.log(`${kept} of ${results.figures.length} figures reached, in ${seconds(started)} s.`);
    return missed.length > 0 ? 1 : 0;
  } finally {
    process.off("SIGINT", interrupted);
    await bench.remove();
  }
}

function writeDocuments(machine: Machine, results: Results, quick: boolean): void {
  const folder = join(import.meta.dirname, "..", "docs", "bench");
  fs.mkdirSync(folder, { recursive: true });
  const figures = results.figures.map((figure) => ({ ...figure, median: middleOf(figure), reached: passes(figure) }));
  const document = { measured: new Date().toISOString(), quick, machine, ...results, figures };
  fs.writeFileSync(join(folder, "journal.json"), `${JSON.stringify(document, null, 2)}\n`);
  const caption = `${machineLines(machine).join("; ")}; ${document.measured.slice(0, 10)}`;
  fs.writeFileSync(join(folder, "ratios.svg"), ratiosPlot(results.figures, caption));
  if (results.ages.length > 0) fs.writeFileSync(join(folder, "age.svg"), agePlot(results.ages, caption));
  console.log(`Written: ${folder}`);
}

function progress(line: string): void {
  console.error(`  ${line}`);
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}
