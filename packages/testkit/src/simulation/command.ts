import { parseArgs } from "node:util";
import { type CrashOptions, simulateCrashes, simulateFaults } from "./drive.ts";
import { folderStore } from "./folder-store.ts";
import { tellFailures } from "./tally.ts";
import { type ProfileName, profileNames } from "./workload.ts";

const HELP = `npm run simulate -- [options]

Runs the folder store on a simulated disk: a power cut and a SIGKILL before every step that changes the disk and
before every step of the recovery, and every fault, once and permanently. Exits with 1 at the first seed that fails.

  --states <n>     continue with further seeds until this many states are checked (default 20000)
  --seed <n>       the first seed (default 1)
  --profile <name> the kind of workload: ${profileNames.join(", ")} (default: each in turn)
  --length <n>     number of tasks in a workload (default 24)
  --crashes        only crashes        --faults   only faults
  --case <name>    only one case of one seed, as a failure names it

Example: npm run simulate -- --seed 1 --states 1000000
`;

const { values } = parseArgs({
  options: {
    states: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    profile: { type: "string" },
    length: { type: "string", default: "24" },
    crashes: { type: "boolean" },
    faults: { type: "boolean" },
    case: { type: "string" },
    help: { type: "boolean" },
  },
});

/** A whole number of at least 1; anything else ends the command with code 2. */
function wholeNumber(name: "states" | "seed" | "length"): number {
  const given = values[name];
  if (/^[1-9]\d{0,14}$/u.test(given)) return Number(given);
  process.stderr.write(`--${name} takes a whole number, not "${given}"\n`);
  process.exit(2);
}

function profilesWanted(): readonly ProfileName[] {
  if (values.profile === undefined) return profileNames;
  const known = profileNames.find((name) => name === values.profile);
  if (known !== undefined) return [known];
  process.stderr.write(`--profile takes ${profileNames.join(", ")}, not "${values.profile}"\n`);
  process.exit(2);
}

if (values.help) process.stdout.write(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const wanted = wholeNumber("states");
  const length = wholeNumber("length");
  const profiles = profilesWanted();
  const started = performance.now();
  let states = 0;
  let workloads = 0;
  let shown = started;
  const progress = (so: number): void => {
    if (!process.stderr.isTTY || performance.now() - shown < 200) return;
    shown = performance.now();
    process.stderr.write(`\r${states + so} of ${wanted} states, ${Math.round((shown - started) / 1000)} s `);
  };
  const simulations = values.faults
    ? [simulateFaults]
    : values.crashes
      ? [simulateCrashes]
      : [simulateCrashes, simulateFaults];
  for (let seed = wholeNumber("seed"); states < wanted; seed++) {
    for (const profile of profiles) {
      for (const simulate of simulations) {
        if (states >= wanted) break;
        const options: CrashOptions = {
          open: folderStore,
          seed,
          profile,
          length,
          states: wanted - states,
          onProgress: progress,
          ...(values.case === undefined ? {} : { only: values.case }),
        };
        const report = await simulate(options);
        states += report.states;
        workloads += 1;
        if (report.failures.length === 0) continue;
        process.stdout.write(`\n${tellFailures(report.failures)}\n\n`);
        process.stdout.write(`FAILED after ${states} states of ${workloads} workloads\n`);
        return 1;
      }
    }
    if (values.case !== undefined) break;
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`\npassed: ${states} states of ${workloads} workloads in ${seconds} s, no promise broken\n`);
  return 0;
}
