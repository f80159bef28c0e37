import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ConversationReceipt } from "@holdfast/testkit/conversations";
import type { Receipt } from "@holdfast/testkit/kill";
import { type Command, Option } from "commander";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { paintFor } from "../terminal/colour.ts";
import { progressOn } from "../terminal/progress.ts";
import { assertNoStore, countOf, countOrNoneOf } from "./arguments.ts";

/** Enough for the totals and a few faults: one fault already proves a store broken. */
const LINES_MAX = 12;

interface Options {
  readonly kills: number;
  readonly conversations: number;
  readonly on: string;
  readonly durability: "power" | "process";
  readonly seed?: number;
  readonly lanes?: number;
  readonly dir?: string;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("torture")
    .summary("kill writers on this machine's disk and check that nothing is lost")
    .description(
      "Runs the kill tests on this machine's disk: kills writers of a store with SIGKILL, again and again, then whole agents in mid-conversation. After each kill it checks that every acknowledged record is there, intact and in order, and nothing else. Your own sessions are not touched. Exit code 1 if a promise was broken; the store is then kept for inspection.",
    )
    .option("--kills <n>", "number of times to kill a writer", countOrNoneOf, 200)
    .option("--conversations <n>", "number of times to kill an agent", countOrNoneOf, 20)
    .option("--on <store>", "folder, sqlite, all, or the URL of a module that exports openStore", "all")
    .addOption(
      new Option("--durability <d>", "what an acknowledged record survives")
        .choices(["power", "process"])
        .default("power"),
    )
    .option("--seed <n>", "repeat the plan of an earlier run", countOf)
    .option("--lanes <n>", "sessions under test at once (default: one per processor)", countOf)
    .option("--dir <path>", "folder to create the stores in, on the disk to test (default: the temporary folder)")
    .option("--json", "print the totals as JSON")
    .addHelpText("after", "\nExample:\n  holdfast torture --kills 1000 --dir ~")
    .action((options: Options, command: Command) => {
      assertNoStore(
        command,
        "it creates its own stores, so your sessions are not touched; choose their kind with --on and their folder with --dir",
      );
      if (options.kills + options.conversations === 0)
        throw new CommandError(
          EXIT.usage,
          "USAGE",
          "Nothing to do: set --kills or --conversations to at least 1. Nothing was touched.",
        );
      return torture(options);
    });
}

async function torture(options: Options): Promise<void> {
  const stores = storesOf(options.on);
  const seed = options.seed ?? Math.floor(Math.random() * 1_000_000) + 1;
  const place = placeIn(options.dir ?? tmpdir());
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const tell = (line: string): void => void (options.json || process.stdout.write(`${line}\n`));
  tell(
    `${options.kills} writer kills and ${options.conversations} agent kills, durability ${options.durability}, seed ${seed}, in ${place}`,
  );
  const sums: object[] = [];
  let faults = 0;
  for (const [i, module] of stores.entries()) {
    const folder = join(place, String(i));
    mkdirSync(folder, { mode: 0o700 });
    const shared = { seed, signal: stop.signal, ...defined({ lanes: options.lanes }) };
    for (const receipt of [
      await killWriters(module, folder, options, shared, stores.length),
      await killAgents(module, folder, options, shared, stores.length),
    ]) {
      if (!receipt) continue;
      for (const line of receipt.lines.slice(0, LINES_MAX)) tell(line);
      if (receipt.lines.length > LINES_MAX) tell(`  and ${receipt.lines.length - LINES_MAX} more faults`);
      sums.push({ store: module, ...receipt.sums });
      faults += receipt.faults;
    }
  }
  const paint = paintFor(process.stdout);
  const verdict = faults > 0 ? "broken" : stop.signal.aborted ? "stopped" : "kept";
  if (options.json)
    process.stdout.write(`${JSON.stringify({ verdict, seed, durability: options.durability, sums })}\n`);
  if (faults > 0) {
    process.exitCode = EXIT.failed;
    tell(paint("bad", `BROKEN. The stores are kept in ${place}`));
  } else {
    rmSync(place, { recursive: true, force: true });
    tell(paint("good", `${verdict === "stopped" ? "Stopped early. " : ""}No acknowledged record was lost.`));
  }
  const lanes = options.lanes === undefined ? "" : ` --lanes ${options.lanes}`;
  const dir = options.dir === undefined ? "" : ` --dir ${options.dir}`;
  tell(
    `Repeat with: holdfast torture --kills ${options.kills} --conversations ${options.conversations} --on ${options.on} --durability ${options.durability} --seed ${seed}${lanes}${dir}`,
  );
}

interface Sums {
  readonly lines: readonly string[];
  readonly faults: number;
  readonly sums: object;
}

interface TortureOptions {
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly lanes?: number;
}

async function killWriters(
  module: string,
  place: string,
  { kills, durability }: Options,
  shared: TortureOptions,
  stores: number,
): Promise<Sums | null> {
  const share = Math.ceil(kills / stores);
  if (share === 0 || shared.signal.aborted) return null;
  const { runCampaign } = await import("@holdfast/testkit/kill");
  const { verdictLines } = await import("@holdfast/testkit/internal/torture");
  const progress = progressOn(process.stderr, share);
  const onKill = ({ kills: done, torn, faults }: Receipt): void =>
    progress.show(done, `kills on ${module}, torn ${torn}, faults ${faults.length}`);
  const store = { module, place, durability, segmentBytesMax: 256 * 1024 };
  const receipt = await runCampaign({ store, kills: share, ...shared, onKill });
  progress.clear();
  const { points, ...sums } = receipt;
  return {
    lines: verdictLines(module, receipt),
    faults: receipt.faults.length,
    sums: { what: "writers", ...sums, points: Object.fromEntries(points) },
  };
}

async function killAgents(
  module: string,
  place: string,
  { conversations, durability }: Options,
  shared: TortureOptions,
  stores: number,
): Promise<Sums | null> {
  const share = Math.ceil(conversations / stores);
  // Agents open their store by address, and a module has no address.
  if (share === 0 || shared.signal.aborted || (module !== "folder" && module !== "sqlite")) return null;
  const { runConversations } = await import("@holdfast/testkit/conversations");
  const { conversationLines } = await import("@holdfast/testkit/internal/torture");
  const progress = progressOn(process.stderr, share);
  const onKill = ({ kills: done, faults }: ConversationReceipt): void =>
    progress.show(done, `agent kills on ${module}, faults ${faults.length}`);
  const own = join(place, "conversations");
  mkdirSync(own, { mode: 0o700 });
  const receipt = await runConversations({ store: module, place: own, durability, kills: share, ...shared, onKill });
  progress.clear();
  const { kills, conversations: count, requests, effects, faults } = receipt;
  return {
    lines: conversationLines(module, receipt),
    faults: faults.length,
    sums: { what: "agents", kills, conversations: count, requests, effects, faults },
  };
}

function storesOf(asked: string): string[] {
  if (asked === "all") return ["folder", "sqlite"];
  if (asked === "folder" || asked === "sqlite" || URL.canParse(asked)) return [asked];
  throw new CommandError(
    EXIT.usage,
    "USAGE",
    `--on takes folder, sqlite, all or the URL of a module, not "${asked}". Nothing was touched.`,
  );
}

function placeIn(folder: string): string {
  try {
    return mkdtempSync(join(resolve(folder), "holdfast-torture-"));
  } catch (error) {
    throw new CommandError(EXIT.usage, "USAGE", `--dir: ${(error as Error).message}. Nothing was touched.`, error);
  }
}
