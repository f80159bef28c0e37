import { join } from "node:path";
import { parseArgs } from "node:util";
import { defaultCache, install } from "../peers/install.ts";
import { randomFrom } from "../statistics.ts";
import type { Instant } from "./loopback.ts";
import type { System } from "./system.ts";
import { systems } from "./systems.ts";
import { type Trial, tryOnce } from "./trial.ts";

const INSTANTS: readonly Instant[] = ["before", "charged", "returned"];
/** Something that is written in the background may be there at the kill, or not. */
const DELAY_MS = 300;
const HELP = `npm run payment -- [options] [system …]

Kills an agent in the middle of a payment and starts it again, as often as asked, with each system. Prints how often the payment
service charged and what the model was told. Needs the network the first time: a system is installed from npm into a cache.

The systems are ${systems.map(({ key }) => key).join(", ")}. Default: all.

  --runs <n>       how often per instant and variant (default 3)
  --seed <n>       repeats the delays of an earlier run
  --at <instant>   one of ${INSTANTS.join(", ")}, or several
  --variant <key>  one variant, or several
  --cache <folder> where systems are installed (default: ${defaultCache(process.env)})
  --help

PAYMENT_SHOW=1 shows what the agents write.
`;

process.exitCode = await main();

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    console.error(`${error.message}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const random = randomFrom(options.seed);
  console.log(`seed ${options.seed}, Node ${process.version}`);
  let failed = false;
  for (const system of systems.filter(({ key }) => isWanted(key, options.systems))) {
    const versions = Object.entries(system.packages).map(([name, version]) => `${name} ${version}`);
    console.log(`\n${system.name} (${versions.join(", ") || "this repository"})\n${system.driven}`);
    try {
      const modules = await modulesOf(system, options.cache);
      for (const { key, words } of system.variants) {
        if (!isWanted(key, options.variants)) continue;
        console.log(`  ${key}: ${words}`);
        for (const at of INSTANTS) {
          if (!isWanted(at, options.instants)) continue;
          let before = "";
          for (let i = 0; i < options.runs; i++)
            before = say(await tryOnce(system, key, at, Math.floor(random() * DELAY_MS), modules), before);
        }
      }
    } catch (error) {
      failed = true;
      console.log(`  ${error instanceof Error ? error.message : error}`);
    }
  }
  return failed ? 1 : 0;
}

interface Options {
  readonly systems: readonly string[];
  readonly variants: readonly string[];
  readonly instants: readonly string[];
  readonly runs: number;
  readonly seed: number;
  readonly cache: string;
  readonly help: boolean;
}

/** Throws a TypeError, as `parseArgs` does. */
function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: "string", default: "3" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
      at: { type: "string", multiple: true, default: [] },
      variant: { type: "string", multiple: true, default: [] },
      cache: { type: "string", default: defaultCache(process.env) },
      help: { type: "boolean", default: false },
    },
  });
  const { runs, seed, at, variant, cache, help } = values;
  const known = [
    { given: positionals, of: "system", all: systems.map(({ key }) => key) },
    { given: variant, of: "variant", all: systems.flatMap(({ variants }) => variants.map(({ key }) => key)) },
    { given: at, of: "instant", all: INSTANTS },
  ];
  for (const { given, of, all } of known)
    for (const key of given)
      if (!(all as readonly string[]).includes(key)) throw new TypeError(`There is no ${of} ${key}.`);
  for (const number of [runs, seed]) if (!/^\d+$/.test(number)) throw new TypeError(`${number} is not a number.`);
  const numbers = { runs: Number(runs), seed: Number(seed) };
  return { systems: positionals, variants: variant, instants: at, ...numbers, cache, help };
}

function isWanted(key: string, wanted: readonly string[]): boolean {
  return wanted.length === 0 || wanted.includes(key);
}

async function modulesOf(system: System, cache: string): Promise<string | null> {
  if (Object.keys(system.packages).length === 0) return null;
  const folder = await install(cache, { ...system, key: `payment-${system.key}` }, console.error);
  return join(folder, "node_modules");
}

/** Returns what the model was told, which is not repeated after the next run. */
function say({ at, delayMs, charges, ended, seconds, told }: Trial, before: string): string {
  const lines = told === null ? ["nothing: it was not asked"] : told.map((message) => JSON.stringify(message));
  const words = lines.map((line) => `      ${line}`).join("\n");
  const same = words === before ? " the same" : "";
  console.log(`    ${at} + ${delayMs} ms: charged ${charges}, ${ended} after ${seconds} s; the model was told:${same}`);
  if (!same) console.log(words);
  return words;
}
