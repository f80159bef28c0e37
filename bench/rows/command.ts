import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { bundleCommand, commandFolder } from "../../scripts/bundle.ts";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { sessionStore } from "../sessions.ts";
import { median } from "../statistics.ts";

const SESSIONS = 1000;
const PER_ROUND = 5;

/**
 * How long the command takes to start, to answer and to end, against a Node that does nothing. Warm: what Node compiled
 * is kept, as on a user's machine from the second time on.
 */
export async function commandRow(bench: Bench, results: Results): Promise<void> {
  await bundleCommand();
  const store = bench.path("sessions");
  await fill(store);
  const command = join(commandFolder, "bin.js");
  const env = { PATH: process.env["PATH"], HOME: bench.path("home"), HOLDFAST_STORE: store, HOLDFAST_CONFIG: "" };
  const run = (...args: string[]): number => {
    const start = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    if (status !== 0) throw new Error(`holdfast ended with ${status}: ${stderr}`);
    return performance.now() - start;
  };
  for (const [what, args, atMost] of [
    ["holdfast --version", ["--version"], 2],
    [`holdfast ls, ${SESSIONS.toLocaleString("en")} sessions`, ["ls"], 4],
  ] as const) {
    const ratios: number[] = [];
    const ms: [number[], number[]] = [[], []];
    for (let round = -1; round < bench.size(11, 5); round++) {
      const times: [number[], number[]] = [[], []];
      for (let i = 0; i < PER_ROUND; i++) {
        times[0].push(run(command, ...args));
        times[1].push(run("-e", "0"));
      }
      if (round < 0) continue;
      for (const which of [0, 1] as const) ms[which].push(median(times[which]));
      ratios.push(ms[0].at(-1)! / ms[1].at(-1)!);
    }
    results.figures.push({
      row: "command",
      what: `${what}, against node -e 0`,
      bound: { atMost },
      unit: "×",
      rounds: ratios,
      note: `${median(ms[0]).toFixed(0)} against ${median(ms[1]).toFixed(0)} ms`,
    });
  }
}

async function fill(root: string): Promise<void> {
  await using store = await sessionStore(root);
  for (let n = 0; n < SESSIONS; n++) {
    await using session = await store.create({ dialect: "ai-sdk", cwd: `/home/user/project-${n % 20}` });
    const turn = await session.startTurn({ role: "user", content: `Prompt ${n}: please look at the tests that fail` });
    await turn.append({ role: "assistant", content: "They pass now." });
    await turn.end();
  }
}
