import { parseArgs } from "node:util";
import { newSeed, runCommand, wholeNumber } from "../../../testkit/src/torture/command-line.ts";
import { Progress } from "../../../testkit/src/torture/progress.ts";
import { startServer } from "../server/server.ts";
import { storm } from "./storm.ts";

const COMMAND = "npm run storm --";

const HELP = `Kills workers, backends and the server of a PostgreSQL store with SIGKILL, in
mid-append, and checks that all that was acknowledged is there, in order, once,
that nobody wrote after his replacement, and that one who followed all the while
missed nothing and saw nothing twice. It brings a server of its own.

  ${COMMAND} [options]

  --kills <n>   how often to kill (default 500)
  --seed <n>    repeats the plan of an earlier run
  --help

Exit code 0: nothing was lost. 1: something was lost, or another promise was
broken. 2: wrong usage. The seed fixes who is killed; the instant of a death is
the machine's.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { kills: { type: "string" }, seed: { type: "string" }, help: { type: "boolean" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const kills = wholeNumber("kills", values.kills, 500);
  const seed = wholeNumber("seed", values.seed, newSeed());
  process.stdout.write(`${kills} kills of workers, backends and the server, seed ${seed}\n`);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const progress = new Progress(kills);
  const server = await startServer(["restart_after_crash=on"]);
  try {
    const onKill = (done: number): void => progress.show(done, "postgres");
    const { kinds, lives, acknowledged, recovered, softLost, faults } = await storm(server, {
      kills,
      seed,
      signal: stop.signal,
      onKill,
    });
    progress.clear();
    const sums = [
      `  killed: ${kinds.worker} workers, connections of a third of all backends ${kinds.backend} times, ${kinds.backendKilled} backends with SIGKILL, the server ${kinds.server} times`,
      `  workers started ${lives} · acknowledged ${acknowledged} · recovered ${recovered} · of "process", taken by a crash of the server ${softLost}`,
      ...faults.map((fault) => `  fault: ${fault}`),
    ];
    process.stdout.write(`${sums.join("\n")}\n`);
    const verdict = faults.length > 0 ? "BROKEN." : "No acknowledged record was lost.";
    process.stdout.write(`${stop.signal.aborted ? "Stopped early. " : ""}${verdict}\n`);
    process.stdout.write(`Repeat with: ${COMMAND} --kills ${kills} --seed ${seed}\n`);
    return faults.length > 0 ? 1 : 0;
  } finally {
    await server.stop();
  }
}

await runCommand("storm", main);
