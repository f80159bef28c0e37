import { join } from "node:path";
import { programBeside, type SpawnOptions, spin, Victim } from "../kill/victim.ts";
import type { AgentEvent } from "./events.ts";
import type { AgentJob } from "./job.ts";
import type { Log } from "./log.ts";
import type { Ending } from "./plan.ts";

/** Nothing an agent does takes this long on any machine: it hangs. */
const LIFE_MS_MAX = 60_000;
/** Timers have a precision of a millisecond; busy-wait for the rest. */
const SPIN_US_MAX = 1500;

/** How agents are started. */
export interface AgentProgram {
  readonly program: string;
  readonly spawn: SpawnOptions;
}

/**
 * The agent beside this module, loaded once in advance so that Node caches the compiled code (as kill/life.ts does).
 */
export async function warmAgent(cache: string): Promise<AgentProgram> {
  const program = programBeside(import.meta.url, "agent");
  const spawn = { env: { NODE_COMPILE_CACHE: join(cache, "compile-cache") } };
  await using first = new Victim<AgentEvent>(program, { turns: 0 }, spawn);
  await first.until("done");
  await first.died;
  return { program, spawn };
}

/** Starts an agent, reads its events, and kills it as planned. Resolves to the error, if it did not die by our hand. */
export async function liveAgent(agent: AgentProgram, job: AgentJob, ending: Ending, log: Log): Promise<string | null> {
  await using victim = new Victim<AgentEvent>(agent.program, job, agent.spawn);
  let count = 0;
  let isStruck = false;
  const strike = (us: number): void => {
    isStruck = true;
    const kill = (): void => {
      spin(Math.min(us, SPIN_US_MAX));
      victim.kill();
    };
    if (us > SPIN_US_MAX) setTimeout(kill, (us - SPIN_US_MAX) / 1000);
    else kill();
  };
  victim.onEvent((event) => {
    log.hear(event);
    if (isStruck) return;
    // It has finished its work, and the planned kill did not happen.
    if (event.e === "idle") strike(0);
    else if (ending.by === "instant") {
      if (event.e === "ready") strike(ending.us);
    } else if (ending.by === "point") {
      if (event.e === "at") strike(0);
    } else if (isAim(event, ending) && ++count === ending.nth) strike(ending.us);
  });
  let hangs = false;
  const timer = setTimeout(() => {
    hangs = true;
    victim.kill();
  }, LIFE_MS_MAX);
  const death = await victim.died;
  clearTimeout(timer);
  const failed = victim.events.find((event) => event.e === "failed");
  if (hangs) return `it hung for ${LIFE_MS_MAX} ms`;
  if (failed?.e === "failed") return failed.message;
  return death.signal === "SIGKILL" ? null : `it ended by itself (${death.code ?? death.signal}): ${victim.stderr}`;
}

function isAim(event: AgentEvent, { e, op }: Extract<Ending, { by: "event" }>): boolean {
  return event.e === e && (op === undefined || (event.e === "try" && event.op.do === op));
}
