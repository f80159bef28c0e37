import { setTimeout as passed } from "node:timers/promises";
import { type Ended, ended, type Home, temporaryHome } from "../command.ts";
import { accountsIn, leftIn } from "../driver.ts";
import { type DrivenAgent, ledgerOf, STEPS, startModel } from "./driven.ts";
import { killAll, processesOf } from "./processes.ts";

const PROMPT = "Make all steps of the task.";

/** What came of the turns of one agent. */
export interface DriveCount {
  readonly agent: string;
  kills: number;
  /** Of the driver with everything below it; of the agent alone. */
  readonly by: Record<"everything" | "the agent alone", number>;
  /** So many of the kills were in a turn that had begun; so many of those while a step was running. */
  inTurn: number;
  inStep: number;
  turns: number;
  /** How often a person had to let a parked turn be tried again. */
  retries: number;
  readonly faults: string[];
}

/**
 * Drives an agent through turns until it has been killed so often, at random instants: alone, or with its driver and
 * everything else. Each turn has to end, and nothing may be left behind.
 */
export async function driveAgent(
  agent: DrivenAgent,
  kills: number,
  random: () => number,
  say: (line: string) => void,
): Promise<DriveCount> {
  const by = { everything: 0, "the agent alone": 0 };
  const count: DriveCount = { agent: agent.name, kills: 0, by, inTurn: 0, inStep: 0, turns: 0, retries: 0, faults: [] };
  while (count.kills < kills && count.faults.length < 3) {
    using home = temporaryHome();
    await using model = await startModel(home, agent);
    const { args, env } = agent.install(home, new URL(model.url).origin);
    const command = [...agent.program.command, ...args].map((word) => `'${word}'`).join(" ");
    const turn = new DrivenTurn(home, command, env);
    try {
      await turn.play(count, kills, random);
      count.faults.push(...(await turn.faults()));
    } catch (error) {
      count.faults.push(String(error));
    } finally {
      killAll(processesOf(home.path).map(({ pid }) => pid));
    }
    count.turns += 1;
    const words = count.faults.length === 0 ? "as expected" : count.faults.join("; ");
    say(`${agent.name}: turn ${count.turns}, ${count.kills} of ${kills} kills: ${words}`);
  }
  return count;
}

/** A life that nobody kills ends sooner than this. */
const LIFE_MS = 180_000;
/** Kills of one turn; then it is left to end. */
const KILLS_MAX = 12;

class DrivenTurn {
  readonly #home: Home;
  readonly #command: string;
  readonly #env: Readonly<Record<string, string>>;
  #last: Ended | null = null;

  constructor(home: Home, command: string, env: Readonly<Record<string, string>>) {
    this.#home = home;
    this.#command = command;
    this.#env = env;
  }

  async play(count: DriveCount, kills: number, random: () => number): Promise<void> {
    for (let own = 0; own < KILLS_MAX && count.kills < kills; ) {
      const { life } = await this.#start(count);
      const watch = new AbortController();
      const first = await Promise.race([this.#instant(random, watch.signal), life]);
      watch.abort();
      if (first !== null) {
        this.#last = first;
        if (first.code === 0) return;
      } else {
        const alone = random() < 0.3;
        killAll(this.#victims(alone));
        if ((await accountsIn(this.#home)).some(({ state }) => state !== "idle")) {
          count.inTurn += 1;
          if (/^begin/.test(ledgerOf(this.#home).at(-1) ?? "")) count.inStep += 1;
        }
        own += 1;
        count.kills += 1;
        count.by[alone ? "the agent alone" : "everything"] += 1;
        if (alone) this.#last = await Promise.race([life, passed(LIFE_MS, this.#last)]);
        else await life;
        if (this.#last?.code === 0) return;
      }
    }
    for (let tries = 0; tries < 4; tries++) {
      const { life } = await this.#start(count);
      this.#last = await Promise.race([life, passed(LIFE_MS, this.#last)]);
      if (this.#last?.code === 0) return;
    }
  }

  /** Resolves when it is time for a kill: at any instant from the start, or mostly soon after the agent has worked. */
  async #instant(random: () => number, over: AbortSignal): Promise<null> {
    if (random() < 0.25) return passed(random() * 6_000, null);
    const known = ledgerOf(this.#home).length;
    while (ledgerOf(this.#home).length === known && !over.aborted) await passed(20);
    return passed(random() * 800, null);
  }

  /** What is wrong with a turn that has ended. */
  async faults(): Promise<string[]> {
    const faults: string[] = [];
    const expected = (holds: boolean, otherwise: string): void => {
      if (!holds) faults.push(otherwise);
    };
    expected(this.#last?.code === 0, `it ended with ${this.#last?.code}: ${this.#last?.stderr.slice(-300)}`);
    const left = await leftIn(this.#home, 30_000);
    expected(left.length === 0, `processes were left behind: ${left.join("; ")}`);
    const ledger = ledgerOf(this.#home);
    for (let n = 1; n <= STEPS; n++) {
      const begun = ledger.filter((line) => line === `begin ${n}`).length;
      expected(begun === 1, `step ${n} has begun ${begun} times`);
    }
    const states = (await accountsIn(this.#home)).map(({ state }) => state);
    expected(states.length === 1 && states[0] === "idle", `sessions: ${states.join(", ")}`);
    return faults;
  }

  async #start(count: DriveCount): Promise<{ readonly life: Promise<Ended> }> {
    const accounts = await accountsIn(this.#home);
    // It was killed too often in a row before a step had ended: a person lets it be tried again.
    const isParked = accounts.some(({ state }) => state === "parked");
    if (isParked) count.retries += 1;
    const how = accounts.length > 0 ? ["--continue", "--finish", ...(isParked ? ["--retry"] : [])] : [PROMPT];
    const rules = ["--allow", "shell(sh ./step.sh *)"];
    return { life: ended(this.#home.start(["run", "--agent", this.#command, ...how, ...rules], { env: this.#env })) };
  }

  /** The agent's own process, or that and those of its driver. What the agent has started is left to the next life. */
  #victims(alone: boolean): number[] {
    const all = processesOf(this.#home.path);
    const is = (word: string) => all.filter(({ command }) => command.includes(word));
    const supervisors = is("--supervise").map(({ pid }) => pid);
    const agents = all.filter(({ parent }) => supervisors.includes(parent)).map(({ pid }) => pid);
    return alone ? agents : [...is("--agent").map(({ pid }) => pid), ...supervisors, ...agents];
  }
}
