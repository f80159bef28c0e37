import { join } from "node:path";
import type { Log } from "./log.ts";
import type { LabEvent } from "./pipe.ts";
import type { Ending } from "./plan.ts";
import type { StoreSpec } from "./stores.ts";
import { programBeside, type SpawnOptions, spin, Victim } from "./victim.ts";
import type { WorkerJob } from "./worker.ts";

/** A point that is not reached after this many attempts never will be; the life ends there. */
const ATTEMPTS_MAX = 2000;
/** Nothing a worker does takes this long on any machine: it hangs. */
const LIFE_MS_MAX = 60_000;
/** Timers have a precision of a millisecond; busy-wait for the rest. */
const SPIN_US_MAX = 1500;

export interface LifeEnd {
  readonly victim: Victim;
  /** It was killed, and did not end by itself. */
  readonly killed: boolean;
  /** The name of the point at which it was killed. */
  readonly point?: string;
  /** The error, if it did not die by our hand. */
  readonly complaint?: string;
}

/** How workers are started. */
export interface Worker {
  readonly program: string;
  readonly spawn: SpawnOptions;
}

/**
 * The worker beside this module, loaded once in advance: Node saves its compile cache only when a process exits in
 * order, and the others will not. That makes each start three times as fast. `cache` is the folder for it.
 */
export async function warmWorker(store: StoreSpec, cache: string = store.place): Promise<Worker> {
  const program = programBeside(import.meta.url, "worker");
  const spawn = { env: { NODE_COMPILE_CACHE: join(cache, "compile-cache") } };
  await using first = new Victim(program, { store, session: "" } satisfies WorkerJob, spawn);
  first.hush();
  await first.until("done");
  await first.died;
  return { program, spawn };
}

/** Starts a worker, reads its events, and kills it as planned. */
export async function live(worker: Worker, job: WorkerJob, ending: Ending, log: Log): Promise<LifeEnd> {
  const victim = new Victim(
    worker.program,
    ending.by === "point" ? { ...job, point: ending.point } : job,
    worker.spawn,
  );
  const killer = new Killer(victim, ending);
  victim.onEvent((event) => {
    log.hear(event);
    killer.hear(event);
  });
  const hangs = setTimeout(() => killer.strike("hangs"), LIFE_MS_MAX);
  const death = await victim.died;
  clearTimeout(hangs);
  const failed = victim.events.find((event) => event.e === "failed");
  const point = killer.reached === undefined ? {} : { point: killer.reached };
  if (killer.struck === "hangs") return { victim, killed: true, complaint: `it hung for ${LIFE_MS_MAX} ms`, ...point };
  if (failed?.e === "failed") return { victim, killed: false, complaint: failed.message };
  if (death.signal === "SIGKILL") return { victim, killed: true, ...point };
  return { victim, killed: false, complaint: `it ended by itself (${death.code ?? death.signal}): ${victim.stderr}` };
}

class Killer {
  readonly #victim: Victim;
  readonly #ending: Ending;
  #attempts = 0;
  struck: "planned" | "hangs" | undefined;
  reached: string | undefined;

  constructor(victim: Victim, ending: Ending) {
    this.#victim = victim;
    this.#ending = ending;
  }

  hear(event: LabEvent): void {
    if (this.struck) return;
    if (event.e === "attempt") this.#attempts++;
    const ending = this.#ending;
    if (ending.by === "instant" && event.e === "ready") this.#after(ending.us);
    else if (ending.by === "attempt" && event.e === "attempt" && this.#attempts === ending.nth) this.#after(ending.us);
    else if (ending.by === "point" && event.e === "at") {
      this.reached = event.point;
      this.#after(ending.us ?? 0);
    } else if (this.#attempts > ATTEMPTS_MAX) this.strike("planned");
  }

  strike(why: "planned" | "hangs"): void {
    this.struck = why;
    this.#victim.kill();
  }

  #after(us: number): void {
    this.struck = "planned";
    const strike = (): void => {
      spin(Math.min(us, SPIN_US_MAX));
      this.strike("planned");
    };
    if (us > SPIN_US_MAX) setTimeout(strike, (us - SPIN_US_MAX) / 1000);
    else strike();
  }
}
