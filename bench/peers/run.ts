import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeMachine, machineLines } from "../machine.ts";
import type { Options } from "../options.ts";
import { compare } from "./compare.ts";
import { type Comparison, FULL, QUICK } from "./comparison.ts";
import { defaultCache } from "./install.ts";
import { peersPicture } from "./picture.ts";
import { comparisonLines, comparisonPage, failedLines } from "./report.ts";
import { roster } from "./roster.ts";

/** `npm run bench -- --peers`. Returns the exit code: 1 if a peer could not be installed or failed. */
export async function runPeers(options: Options, say: (line: string) => void): Promise<number> {
  const keys = roster.map(({ key }) => key);
  const unknown = options.only.filter((key) => !keys.includes(key));
  if (unknown.length > 0) {
    console.error(`There is no peer ${unknown.join(", ")}. The peers are ${keys.join(", ")}.`);
    return 2;
  }
  const folder = fs.mkdtempSync(join(options.dir ?? tmpdir(), "holdfast-peers-"));
  const remove = (): void => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  const interrupted = (): void => {
    remove();
    process.exit(130);
  };
  process.once("SIGINT", interrupted);
  try {
    const machine = describeMachine(folder);
    for (const line of machineLines(machine)) console.log(line);
    const started = performance.now();
    const comparison = await compare({
      plan: options.quick ? QUICK : FULL,
      quick: options.quick,
      machine,
      folder,
      cache: options.cache ?? defaultCache(process.env),
      keys: options.only,
      say,
    });
    console.log();
    for (const line of comparisonLines(comparison)) console.log(line);
    // Documents show all peers of one run, or nothing.
    if (options.write ?? (options.only.length === 0 && !options.quick)) writeDocuments(comparison);
    console.log(`${comparison.peers.length} stores in ${Math.round((performance.now() - started) / 1000)} s.`);
    return failedLines(comparison).length > 0 ? 1 : 0;
  } finally {
    process.off("SIGINT", interrupted);
    remove();
  }
}

function writeDocuments(comparison: Comparison): void {
  const folder = join(import.meta.dirname, "..", "..", "docs", "bench");
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(join(folder, "peers.json"), `${JSON.stringify(comparison, null, 2)}\n`);
  fs.writeFileSync(join(folder, "peers.md"), comparisonPage(comparison));
  fs.writeFileSync(join(folder, "peers.svg"), peersPicture(comparison));
  console.log(`Written: ${folder}/peers.json, peers.md, peers.svg`);
}
