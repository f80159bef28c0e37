import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type ConversationReceipt, runConversations } from "../conversations/campaign.ts";
import { type Receipt, runCampaign } from "../kill/campaign.ts";
import type { StoreSpec } from "../kill/stores.ts";
import { type PowerReceipt, runPowerCuts } from "../machine/power-cut.ts";
import { whyNoPowerCuts } from "../machine/probe.ts";
import { newSeed, oneOf, runCommand, UsageError, wholeNumber } from "./command-line.ts";
import { Progress } from "./progress.ts";
import { conversationLines, count, powerCutLines, verdictLines } from "./verdict.ts";

const HELP = `Kills the writers of a store with SIGKILL, again and again. After every death,
checks that everything acknowledged is there, complete and in order, and nothing
else. For conversations, also checks that no tool ran twice, and that the
provider accepts the next request.

  npm run torture -- [options]

  --kills <n>        number of kills (default 1000)
  --conversations <n>  then kill whole agents n times, in the middle of random
                     conversations (default 0; folder and sqlite)
  --power-cuts <n>   then cut the power of a real ext4 on a loop device n times
                     (default 0; as root, on Linux)
  --store <store>    folder, sqlite, all (default), or the URL of a module that
                     exports openStore
  --durability <d>   power (default) or process
  --seed <n>         repeats the plan of an earlier run
  --session <n>      only the session with this number, as a fault names it
  --lanes <n>        sessions under test at once (default: one per processor)
  --dir <path>       where to create the stores (default: the temporary folder)
  --help

Exit code 0: nothing was lost. 1: something was lost, or another promise was
broken; the store is left in place. 2: wrong usage. The seed fixes what is
written and where the kills are aimed, but not the exact instant of a death.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: "string" },
      conversations: { type: "string" },
      "power-cuts": { type: "string" },
      store: { type: "string" },
      durability: { type: "string" },
      seed: { type: "string" },
      session: { type: "string" },
      lanes: { type: "string" },
      dir: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const kills = wholeNumber("kills", values.kills, 1000, 0);
  const talks = wholeNumber("conversations", values.conversations, 0, 0);
  const cuts = wholeNumber("power-cuts", values["power-cuts"], 0, 0);
  const seed = wholeNumber("seed", values.seed, newSeed(), 0);
  const durability = oneOf("durability", values.durability, ["power", "process"], "power");
  const stores = storesOf(values.store ?? "all");
  const lanes = values.lanes === undefined ? {} : { lanes: wholeNumber("lanes", values.lanes, 1) };
  const only = values.session === undefined ? {} : { only: wholeNumber("session", values.session, 0, 0) };
  const place = placeIn(values.dir ?? tmpdir());

  process.stdout.write(
    `${count(kills, "kill")}${talks > 0 ? `, ${talks} in conversations` : ""} on ${stores.join(" and ")}, durability ${durability}, seed ${seed}\n`,
  );
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());

  let broken = false;
  for (const [i, module] of stores.entries()) {
    const folder = join(place, String(i));
    mkdirSync(folder, { mode: 0o700 });
    const store: StoreSpec = { module, place: folder, durability, segmentBytesMax: 256 * 1024 };
    const options = { seed, ...lanes, ...only, signal: stop.signal };
    if (kills > 0 && !(await killWriters(store, Math.ceil(kills / stores.length), options))) broken = true;
    if (stop.signal.aborted) break;
    if (talks > 0 && !(await killAgents(store, Math.ceil(talks / stores.length), options))) broken = true;
    if (stop.signal.aborted) break;
    if (cuts > 0 && !(await cutPower(module, Math.ceil(cuts / stores.length), seed, stop.signal))) broken = true;
  }

  const asked = `--kills ${kills}${talks > 0 ? ` --conversations ${talks}` : ""}${cuts > 0 ? ` --power-cuts ${cuts}` : ""} --store ${values.store ?? "all"} --durability ${durability} --seed ${seed}`;
  if (broken) process.stdout.write(`BROKEN. The stores are kept in ${place}\n`);
  else {
    rmSync(place, { recursive: true, force: true });
    process.stdout.write(`${stop.signal.aborted ? "Stopped early. " : ""}No acknowledged record was lost.\n`);
  }
  process.stdout.write(`Repeat with: npm run torture -- ${asked}\n`);
  return broken ? 1 : 0;
}

interface Options {
  readonly seed: number;
  readonly lanes?: number;
  readonly only?: number;
  readonly signal: AbortSignal;
}

/** False if something was lost. */
async function killWriters(store: StoreSpec, kills: number, options: Options): Promise<boolean> {
  const progress = new Progress(kills);
  const onKill = ({ kills: done, torn, faults }: Receipt): void =>
    progress.show(done, `${store.module}, torn ${torn}, faults ${faults.length}`);
  const receipt = await runCampaign({ store, kills, ...options, onKill });
  progress.clear();
  process.stdout.write(`${verdictLines(store.module, receipt).join("\n")}\n`);
  return receipt.faults.length === 0;
}

/** The same for agents in conversation. An agent can only open stores that have an address. */
async function killAgents({ module, place, durability }: StoreSpec, kills: number, options: Options): Promise<boolean> {
  if (module !== "folder" && module !== "sqlite") {
    process.stdout.write(`not run: conversations (${module} has no address)\n`);
    return true;
  }
  const progress = new Progress(kills);
  const onKill = ({ kills: done, faults }: ConversationReceipt): void =>
    progress.show(done, `conversations on ${module}, faults ${faults.length}`);
  const talk = join(place, "conversations");
  mkdirSync(talk, { mode: 0o700 });
  const receipt = await runConversations({ store: module, place: talk, durability, kills, ...options, onKill });
  progress.clear();
  process.stdout.write(`${conversationLines(module, receipt).join("\n")}\n`);
  return receipt.faults.length === 0;
}

/**
 * False if something was lost. If the machine does not allow the test, that is reported; it is not a verdict on the
 * store.
 */
async function cutPower(module: string, cuts: number, seed: number, signal: AbortSignal): Promise<boolean> {
  const why = whyNoPowerCuts();
  if (why !== null) {
    process.stdout.write(`not run: power cuts (${why})\n`);
    return true;
  }
  const progress = new Progress(cuts);
  const onCut = ({ cuts: done, lost }: PowerReceipt): void =>
    progress.show(done, `power cuts on ${module}, lost ${lost}`);
  const receipt = await runPowerCuts({ module, cuts, seed, onCut, signal });
  progress.clear();
  process.stdout.write(`${powerCutLines(module, receipt).join("\n")}\n`);
  return receipt.faults.length === 0;
}

function storesOf(asked: string): string[] {
  if (asked === "all") return ["folder", "sqlite"];
  if (asked === "folder" || asked === "sqlite" || URL.canParse(asked)) return [asked];
  throw new UsageError(`--store takes folder, sqlite, all or the URL of a module, not "${asked}"`);
}

function placeIn(folder: string): string {
  try {
    return mkdtempSync(join(resolve(folder), "holdfast-torture-"));
  } catch (error) {
    throw new UsageError(`--dir: ${(error as Error).message}`);
  }
}

await runCommand("torture", main);
