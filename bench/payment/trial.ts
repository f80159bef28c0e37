import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Ended, type Instant, Loopback } from "./loopback.ts";
import type { Running, System } from "./system.ts";

/** Longer than the leases and retries of every system here, as they are set. */
const LIMIT_MS = 150_000;
/** Until the instant is reached. */
const FIRST_MS = 60_000;

export interface Trial {
  readonly at: Instant;
  /** Milliseconds between the instant and the kill. */
  readonly delayMs: number;
  readonly charges: number;
  /** What the first request to the model after the restart has after the prompt; null if there was none. */
  readonly told: readonly unknown[] | null;
  /** How the agent ended after the restart. */
  readonly ended: string;
  /** From the restart to the end. */
  readonly seconds: number;
}

/**
 * One killed payment. `modules`: the `node_modules` of the system, null for Holdfast. Throws if the agent did not reach
 * the instant.
 */
export async function tryOnce(
  system: System,
  variant: string,
  at: Instant,
  delayMs: number,
  modules: string | null,
): Promise<Trial> {
  const folder = fs.mkdtempSync(join(tmpdir(), "holdfast-payment-"));
  const world = fs.mkdtempSync(join(tmpdir(), "holdfast-payment-world-"));
  const loopback = await Loopback.open(world);
  const agents = join(import.meta.dirname, "agents");
  const started: ChildProcess[] = [];
  let running: Running | null = null;
  try {
    for (const file of fs.readdirSync(agents)) fs.copyFileSync(join(agents, file), join(folder, file));
    if (modules) fs.symlinkSync(modules, join(folder, "node_modules"));
    running = await system.begin({ folder, variant, url: loopback.url });
    const first = running.start(false);
    started.push(first);
    const reached = new Promise<boolean>((resolve) => loopback.killAt(at, () => resolve(true)));
    const early = Promise.race([once(first, "exit"), sleep(FIRST_MS, null, { ref: false })]).then(() => false);
    if (!(await Promise.race([reached, early])))
      throw new Error(`${system.key} ${variant} did not reach the instant "${at}"`);
    await sleep(delayMs);
    await kill(first);
    const requests = loopback.requests.length;
    const begun = performance.now();
    const second = running.start(true);
    started.push(second);
    const gone = once(second, "exit").then(async () => {
      // What it said last may still be on its way.
      await sleep(500);
      return { error: `exited with ${second.exitCode}` };
    });
    const late = sleep(LIMIT_MS, { error: `no end within ${LIMIT_MS / 1000} s` }, { ref: false });
    const { error = "done" }: Ended = await Promise.race([loopback.ended, gone, late]);
    return {
      ...{ at, delayMs, charges: loopback.charges.length, ended: error },
      told: afterPrompt(loopback.requests[requests]),
      seconds: Math.round((performance.now() - begun) / 100) / 10,
    };
  } finally {
    for (const child of started) await kill(child);
    await running?.stop();
    loopback.close();
    for (const used of [folder, world]) fs.rmSync(used, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Kills the agent and what it has started. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  process.kill(-child.pid!, "SIGKILL");
  await exited;
}

function afterPrompt(messages: unknown): readonly unknown[] | null {
  if (!Array.isArray(messages)) return null;
  return messages.slice(1 + messages.findLastIndex((message) => JSON.stringify(message).includes("Pay ACME 42")));
}
