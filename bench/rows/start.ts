import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { bundleLibrary, libraryFolder } from "../../scripts/bundle.ts";
import type { Bench } from "../bench.ts";
import type { Figure, Results } from "../figure.ts";
import { hastyDisk } from "../fixtures.ts";
import { median } from "../statistics.ts";

const PER_ROUND = 5;

/**
 * What a new process pays, with the library as it is installed: importing it, against an empty module; and opening a
 * store to list its sessions, against a Node that does nothing.
 */
export async function startRow(bench: Bench, { figures }: Results): Promise<void> {
  await bundleLibrary();
  const library = JSON.stringify(pathToFileURL(join(libraryFolder, "index.js")).href);
  const empty = writeModule(bench, "");
  const rounds = bench.size(11, 5);
  figures.push({
    row: "start",
    what: 'import "holdfast", more than an empty module',
    bound: { atMost: 25 },
    ...inTurn(rounds, [writeModule(bench, `import ${library};`)], [empty]),
  });

  const count = bench.size(10_000, 2000);
  const root = bench.path("sessions");
  await fill(root, count);
  const listing = writeModule(
    bench,
    `import { openStore } from ${library};
    const store = await openStore(${JSON.stringify(root)});
    const { sessions } = await store.list({ limit: ${count} });
    if (sessions.length !== ${count}) throw new Error(\`listed \${sessions.length} sessions\`);
    await store.close();`,
  );
  const what = `import, open and list ${count.toLocaleString("en")} sessions, more than node -e 0`;
  figures.push({ row: "start", what, bound: { atMost: 60 }, ...inTurn(rounds, [listing], ["-e", "0"]) });
}

function writeModule(bench: Bench, text: string): string {
  const path = `${bench.path("module")}.mjs`;
  fs.writeFileSync(path, text);
  return path;
}

/**
 * Runs Node with both lists of arguments in turn. The figure of a round is by how much the median of the first is
 * longer.
 */
function inTurn(
  rounds: number,
  ours: readonly string[],
  theirs: readonly string[],
): Pick<Figure, "unit" | "rounds" | "note"> {
  const ms: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    const times: [number[], number[]] = [[], []];
    for (let i = 0; i < PER_ROUND; i++) {
      times[0].push(run(ours));
      times[1].push(run(theirs));
    }
    // The first round fills the caches.
    if (round >= 0) for (const which of [0, 1] as const) ms[which].push(median(times[which]));
  }
  const note = `${median(ms[0]).toFixed(0)} against ${median(ms[1]).toFixed(0)} ms`;
  return { unit: "ms", rounds: ms[0].map((own, round) => own - ms[1][round]!), note };
}

function run(args: readonly string[]): number {
  const start = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  if (status !== 0) throw new Error(`Node ended with ${status}: ${stderr}`);
  return performance.now() - start;
}

async function fill(root: string, count: number): Promise<void> {
  await using store = await openStoreWith((options) =>
    openFolderStore(root, { ...options, disk: hastyDisk, durability: "process" }),
  );
  for (let n = 0; n < count; n++) {
    await using session = await store.create({ dialect: "ai-sdk", cwd: `/home/user/project-${n % 20}` });
    const turn = await session.startTurn({ role: "user", content: `Prompt ${n}: please look at the tests that fail` });
    await turn.append({ role: "assistant", content: "They pass now." });
    await turn.end();
  }
}
