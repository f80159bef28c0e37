import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openJournalStore } from "holdfast";
import { oneOf, runCommand } from "../kill/command-line.ts";
import { temporaryPlace } from "../kill/place.ts";
import { programBeside, Victim } from "../kill/victim.ts";
import type { AgentJob } from "./agent.ts";
import type { DemoEvent } from "./events.ts";
import { Ledger } from "./ledger.ts";
import * as screen from "./screen.ts";

const HELP = `An agent is killed with SIGKILL twice in one turn: while its tools run in
parallel, and in the middle of a sentence. Each time another process resumes it.

  npm start -- [options]

  --store <kind>   folder (default) or sqlite
  --help

The model is scripted and needs no network. The processes, the kills and the
disk are real. npm run torture kills at random instants, thousands of times.

Exit code 0: the receipt balances. 1: it does not. 2: wrong usage.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { store: { type: "string" }, help: { type: "boolean" } } });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const kind = oneOf("store", values.store, ["folder", "sqlite"], "folder");
  using place = temporaryPlace();
  const store = kind === "folder" ? join(place.path, "agent-data") : `sqlite:${join(place.path, "agent.db")}`;
  const job: AgentJob = { store, world: join(place.path, "world") };
  const ledger = new Ledger();
  screen.showStart(store);
  await life(job, 1, ledger, toolsInParallel());
  await life(job, 2, ledger, midSentence());
  await life(job, 3, ledger, null);
  const world = existsSync(job.world) ? readFileSync(job.world, "utf8").trim().split("\n") : [];
  const receipt = ledger.receipt(world);
  screen.showReceipt(receipt);
  return receipt.balances ? 0 : 1;
}

/** When to kill, and in which words. */
type Aim = (event: DemoEvent) => string | null;

/** One tool has ended, two run, and the last has not started. */
function toolsInParallel(): Aim {
  const seen = new Set<string>();
  return (event) => {
    if (event.e === "tool") seen.add(`${event.name} ${event.came}`);
    const isNow = ["run_tests ended", "publish started", "update_docs started"].every((one) => seen.has(one));
    return isNow ? "while two tools run, and a third has not started" : null;
  };
}

function midSentence(): Aim {
  let text = "";
  return (event) => {
    if (event.e === "answer") text = "";
    if (event.e === "word") text += event.text;
    return text.endsWith("so I did ") ? "in the middle of a sentence" : null;
  };
}

async function life(job: AgentJob, number: number, ledger: Ledger, aim: Aim | null): Promise<void> {
  await using agent = new Victim<DemoEvent>(programBeside(import.meta.url, "agent"), job);
  const { streamed } = ledger;
  let where: string | null = null;
  agent.onEvent((event) => {
    // What it says after the shot was on its way is part of what it said.
    ledger.hear(event);
    if (where === null) screen.showEvent(event, { number, pid: agent.pid, streamed });
    where ??= aim?.(event) ?? null;
    if (where !== null) agent.kill();
  });
  const { code, signal } = await agent.died;
  screen.showDeath(where ?? `exit code ${code ?? signal}`, ledger.streamed, where !== null);
  await using journals = await openJournalStore(job.store);
  ledger.check(await Array.fromAsync(journals.history(ledger.session)));
}

await runCommand("npm start", main);
