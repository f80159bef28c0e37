import type { Command } from "commander";
import { loadConfig } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { outlivePipe } from "../terminal/pipe.ts";
import { assertNoStore, countOf } from "./arguments.ts";

interface Options {
  readonly kills: number;
  readonly seed?: number;
  readonly loseOne?: true;
  readonly keep?: true;
  readonly json?: true;
}

const SEED_MAX = 1_000_000;

export function register(program: Command): void {
  program
    .command("demo")
    .summary("kill an agent in mid-turn, again and again, and watch it finish")
    .description(
      "Shows in half a minute what Holdfast does: starts the agent on a real task, kills it with SIGKILL in mid-turn (while text streams, while tools run, during a compaction, and at random moments), resumes it each time, and prints a receipt that compares what the agent acknowledged with the reopened journal. Works in a temporary folder with its own store; needs no key and no network. Your own sessions are not touched. Exit code 1 if the receipt does not balance.",
    )
    .option("--kills <n>", "number of kills", countOf, 5)
    .option("--seed <n>", "repeat the plan of an earlier run", countOf)
    .option(
      "--lose-one",
      "remove one acknowledged record from the journal between two kills, as a faulty store would; the receipt must report it",
    )
    .option("--keep", "keep the temporary folder and print its path")
    .option("--json", "print only the receipt, as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  holdfast demo\n  holdfast demo --kills 20 --seed 7\n  holdfast demo --lose-one; echo $?\n  holdfast demo --json | jq .acknowledged",
    )
    .action(async (options: Options, command: Command) => {
      assertNoStore(command, "it creates its own store, so your sessions are not touched");
      if (options.loseOne && options.kills < 2)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "--lose-one needs --kills 2 or more: at the first kill there is no tool result to lose yet. Nothing was touched.",
        );
      await demo(options, loadConfig(command.optsWithGlobals()).offlineDelayMs);
    });
}

async function demo({ kills, seed, loseOne, keep, json }: Options, delayMs: number): Promise<void> {
  const { runDemo } = await import("../demo/demo.ts");
  const { silentScreen, TextScreen } = await import("../demo/screen.ts");
  const stop = new AbortController();
  let signalled: NodeJS.Signals | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    signalled ??= signal;
    stop.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
  // The reader has gone: clean up before exiting.
  outlivePipe();
  process.stdout.on("error", () => stop.abort());
  try {
    const receipt = await runDemo(
      {
        kills,
        seed: seed ?? Math.floor(Math.random() * SEED_MAX) + 1,
        loseOne: loseOne === true,
        keep: keep === true,
        delayMs,
        signal: stop.signal,
      },
      json ? silentScreen(process.stdout) : new TextScreen(process.stdout, process.env),
    );
    process.exitCode = receipt.verdict === "kept" ? EXIT.done : EXIT.failed;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.off(signal, onSignal);
  }
  // Everything is cleaned up; let the parent see which signal ended it.
  if (signalled !== null) process.kill(process.pid, signalled);
}
