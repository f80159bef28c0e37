import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { guard } from "../../src/guard/guard.ts";
import { type Manner, openTargets, type Target } from "./guard-target.ts";

/**
 * An agent at work under a guard: `guard-agent.ts <job>`. It says on stdout what it has done, one JSON value a line.
 */
export interface Job {
  readonly folder: string;
  readonly ids: readonly string[];
  readonly host: keyof typeof hosts;
  readonly manner?: Manner;
  /** Sessions before these, whose recording fails. */
  readonly failing?: { readonly ids: readonly string[]; readonly manner: Manner };
}

export type Said =
  | { readonly say: "ack"; readonly id: string; readonly n: number }
  | { readonly say: "ready" | "draining" | "heard" | "went on" | "forgot" | "released" | "eof" }
  | { readonly say: "listeners"; readonly counts: Record<string, number> }
  | { readonly say: "read"; readonly text: string };

function say(said: Said): void {
  try {
    writeSync(1, `${JSON.stringify(said)}\n`);
  } catch (error) {
    // The terminal is gone: that is what the test is about, and an agent that survives its terminal says nothing more.
    if ((error as NodeJS.ErrnoException).code !== "EIO") throw error;
  }
}

const job = JSON.parse(process.argv[2]!) as Job;
const failing = job.failing ? await openTargets(`${job.folder}-failing`, job.failing.ids, job.failing.manner) : [];
const targets = await openTargets(job.folder, job.ids, job.manner ?? "sync");

/** The turn that runs when the signal comes: appends without end, and says what was acknowledged. */
async function work(): Promise<never> {
  for (let n = 1; ; n++) {
    for (const [i, target] of targets.entries()) {
      await target.append(n);
      say({ say: "ack", id: job.ids[i]!, n });
    }
    if (n === 3) say({ say: "ready" });
    await sleep(1);
  }
}

function guardAll(options?: Parameters<typeof guard>[1]): (() => void)[] {
  return [...failing, ...targets].map((target: Target) => guard(target.session, options));
}

const events = ["SIGTERM", "SIGHUP", "SIGINT", "uncaughtExceptionMonitor", "uncaughtException", "unhandledRejection"];
function sayListeners(): void {
  const counts = Object.fromEntries(events.map((event) => [event, process.listenerCount(event)]));
  say({ say: "listeners", counts });
}

/** Does something when the parent writes a line. */
function whenTold(then: () => void): void {
  createInterface({ input: process.stdin }).once("line", then);
}

/** What the program around the guard does about signals and errors. */
const hosts = {
  async plain() {
    guardAll();
    await work();
  },
  async drains() {
    guardAll();
    process.on("SIGTERM", async () => {
      say({ say: "draining" });
      // C6, R17: a host that drains for two seconds. The work above goes on meanwhile.
      await sleep(2_000);
      process.exit(0);
    });
    await work();
  },
  async once() {
    guardAll();
    // Said when the listener has run: until then the process has no listener at all, with or without a guard.
    process.once("SIGTERM", () => setImmediate(() => say({ say: "heard" })));
    await work();
  },
  /** Tidies up, and then wants to be ended by the same signal. */
  async raises() {
    process.once("SIGTERM", () => {
      say({ say: "heard" });
      process.kill(process.pid, "SIGTERM");
    });
    guardAll();
    await work();
  },
  /** Ignores the signal, until it is told not to. */
  async ignores() {
    const ignore = () => say({ say: "heard" });
    process.on("SIGTERM", ignore);
    guardAll();
    whenTold(() => {
      process.off("SIGTERM", ignore);
      say({ say: "forgot" });
    });
    await work();
  },
  /**
   * As signal-exit 3 and 4 do (Ink has it): its listener ends the process, unless it finds another listener than its
   * own.
   */
  async signalExit() {
    const listener = () => {
      if (process.listeners("SIGTERM").length !== 1) return;
      process.off("SIGTERM", listener);
      say({ say: "heard" });
      process.kill(process.pid, "SIGTERM");
    };
    process.on("SIGTERM", listener);
    guardAll();
    await work();
  },
  async throws() {
    guardAll();
    whenTold(() => {
      throw new TypeError("nobody caught this");
    });
    await work();
  },
  async rejects() {
    guardAll();
    whenTold(() => void Promise.reject(new RangeError("nobody awaited this")));
    await work();
  },
  /** Survives its own errors. */
  async survives() {
    guardAll();
    process.on("uncaughtException", () => say({ say: "went on" }));
    whenTold(() => {
      throw new TypeError("somebody caught this");
    });
    await work();
  },
  async released() {
    sayListeners();
    const releases = guardAll();
    sayListeners();
    for (const release of releases) release();
    sayListeners();
    await work();
  },
  async closed() {
    sayListeners();
    guardAll();
    sayListeners();
    for (const target of targets) await target.close();
    sayListeners();
  },
  /** Has nothing more to do, and does not read: the guard must not keep it alive. */
  async idle() {
    guardAll();
    for (const target of targets) await target.append(1);
    say({ say: "ready" });
  },
};

await hosts[job.host]();
