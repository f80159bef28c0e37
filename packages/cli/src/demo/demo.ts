import { CommandError, EXIT } from "../exit.ts";
import { stopGroup } from "../tools/shell/surviving-commands.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { argsOf, type Life, runLife } from "./agent-life.ts";
import { Child } from "./child.ts";
import { type DemoFolder, filesIn, makeDemoFolder } from "./demo-folder.ts";
import { inspectJournal, type JournalFacts } from "./inspect-journal.ts";
import { chance, type KillMoment, planKills } from "./kill-plan.ts";
import { type Kill, type Receipt, receiptOf } from "./receipt.ts";
import { type RemovedRecord, removeRecord } from "./remove-record.ts";
import type { Screen } from "./screen.ts";
import { EFFECTS, type Task, taskFor } from "./task.ts";

export interface DemoOptions {
  readonly kills: number;
  readonly seed: number;
  readonly loseOne: boolean;
  readonly keep: boolean;
  /** The offline model's delay before each piece of its answer. */
  readonly delayMs: number;
  /** Fires when the user stops the demo. */
  readonly signal: AbortSignal;
}

/** With a shorter delay, no kill could hit the middle of anything. */
const DELAY_MS_MIN = 4;

export async function runDemo(options: DemoOptions, screen: Screen): Promise<Receipt> {
  const task = taskFor(options.kills);
  const place = makeDemoFolder(task);
  const demo = new Demo({ ...options, delayMs: Math.max(DELAY_MS_MIN, options.delayMs) }, task, place, screen);
  const stop = (): void => demo.stop();
  options.signal.addEventListener("abort", stop, { once: true });
  try {
    return await demo.run();
  } finally {
    options.signal.removeEventListener("abort", stop);
    await demo.clear();
    if (options.keep) screen.kept(place.path);
    else place.remove();
  }
}

class Demo {
  readonly #options: DemoOptions;
  readonly #task: Task;
  readonly #place: DemoFolder;
  readonly #screen: Screen;
  /** The agent being killed, and the undisturbed one. */
  #agent: Child | null = null;
  #other: Child | null = null;
  readonly #acknowledged = new Acknowledgements();
  readonly #looks: JournalFacts[] = [];
  readonly #kills: Kill[] = [];
  readonly #strange: string[] = [];
  #session = "";
  #taken: RemovedRecord | null = null;

  constructor(options: DemoOptions, task: Task, place: DemoFolder, screen: Screen) {
    this.#options = options;
    this.#task = task;
    this.#place = place;
    this.#screen = screen;
  }

  async run(): Promise<Receipt> {
    const start = performance.now();
    const { kills, seed } = this.#options;
    this.#screen.begin(this.#task, this.#options);
    // Meanwhile an undisturbed agent does the same work, to show what the files must be in the end.
    const undisturbed = this.#undisturbed();
    undisturbed.catch(() => undefined);
    const plan = planKills(kills, seed);
    const below = chance(seed);
    let next = 0;
    for (let number = 1; ; number++) {
      const aim = plan[next] ?? null;
      const life = await this.#live(number, aim);
      const now = await inspectJournal(this.#place.here.store, this.#session);
      this.#looks.push(now);
      if (life.shot === null) break;
      this.#died(life, aim!, now);
      next += 1;
      if (!this.#options.loseOne || this.#taken) continue;
      this.#taken = removeRecord(this.#place.here.store, this.#session, below);
      if (this.#taken) this.#screen.lost(this.#taken);
    }
    this.#screen.wait();
    await undisturbed;
    const receipt = this.#receipt(plan.slice(next), performance.now() - start);
    this.#screen.receipt(receipt);
    return receipt;
  }

  /** Kills the child processes. */
  stop(): void {
    this.#agent?.kill();
    this.#other?.kill();
  }

  /** Leaves nothing running: commands outlive their agent, but must not outlive their project. */
  async clear(): Promise<void> {
    this.stop();
    await Promise.allSettled([this.#agent?.died, this.#other?.died]);
    const processes = new Map(this.#looks.flatMap((one) => one.processes).map((process) => [process.pid, process]));
    if (this.#options.signal.aborted && this.#session !== "") {
      for (const process of (await inspectJournal(this.#place.here.store, this.#session)).processes)
        processes.set(process.pid, process);
    }
    for (const process of processes.values()) await stopGroup(process, { graceMs: 500 });
  }

  async #live(number: number, aim: KillMoment | null): Promise<Life> {
    const { here } = this.#place;
    const { delayMs, signal } = this.#options;
    signal.throwIfAborted();
    const start = performance.now();
    const { interruption = null } = this.#looks.at(-1) ?? {};
    const life = await runLife({
      number,
      task: this.#task,
      room: here,
      session: this.#session === "" ? null : this.#session,
      delayMs,
      aim,
      acknowledged: this.#acknowledged,
      started: (child) => {
        this.#agent = child;
      },
      onEvent: (event) => {
        if (event.type === "session") {
          this.#session = event.session;
          this.#screen.life({
            number,
            pid: this.#pid(),
            resumed: interruption !== null,
            ms: performance.now() - start,
          });
        }
        this.#screen.event(event);
      },
      onKill: (where) => this.#screen.kill(this.#pid(), where),
    });
    signal.throwIfAborted();
    if (life.shot === null && (life.death.code !== 0 || !this.#acknowledged.completed)) {
      const how = life.death.signal ?? `exit code ${life.death.code}`;
      throw new CommandError(
        EXIT.failed,
        "DEMO_AGENT",
        `The agent ended by itself (${how}) before its turn completed. Its output:\n${life.said}\nYour own sessions are not touched.`,
      );
    }
    return life;
  }

  #pid(): number {
    return this.#agent?.pid ?? 0;
  }

  #died({ number, pid, shot, streamed }: Life, aim: KillMoment, now: JournalFacts): void {
    const before = this.#looks.at(-2)?.epochs ?? 0;
    const { draft = null } = now.interruption ?? {};
    const found = draft ? draft.reasoning + draft.text : "";
    if (!streamed.startsWith(found)) {
      this.#strange.push(`life ${number}: the journal has text that was never streamed`);
    }
    const kill: Kill = {
      life: number,
      pid,
      aim: aim.at,
      where: shot!,
      calls: now.calls,
      answered: now.answered,
      streamed: { heard: streamed.length, found: found.length },
      tornBytes: now.tornBytes,
      ...(aim.at === "compaction" ? { compaction: now.epochs > before ? "new" : "old" } : {}),
    };
    this.#kills.push(kill);
    this.#screen.found(kill);
  }

  async #undisturbed(): Promise<void> {
    const { work: cwd, store } = this.#place.undisturbed;
    const child = new Child({ args: argsOf(this.#task, null), store, cwd, delayMs: 0 }, () => {});
    this.#other = child;
    const { code } = await child.died;
    if (code === 0) return;
    throw new CommandError(
      EXIT.failed,
      "DEMO_AGENT",
      `The undisturbed agent failed, so there is nothing to compare against:\n${child.stderr.trim()}\nYour own sessions are not touched.`,
    );
  }

  #receipt(missed: readonly KillMoment[], ms: number): Receipt {
    const { here, undisturbed } = this.#place;
    const files = filesIn(here.work);
    const last = this.#looks.at(-1)!;
    return receiptOf({
      seed: this.#options.seed,
      kills: this.#kills,
      missed: missed.map(({ at }) => at),
      acknowledged: this.#acknowledged,
      readings: this.#looks.map(({ records }) => records),
      damage: [...new Set(this.#looks.flatMap(({ damage }) => damage))],
      requests: {
        checked: this.#looks.reduce((sum, { requests }) => sum + requests.checked, 0),
        violations: this.#looks.flatMap(({ requests }) => requests.violations),
      },
      strange: this.#strange,
      effects: (files[EFFECTS] ?? "").split("\n").filter((line) => line !== ""),
      files: { here: files, undisturbed: filesIn(undisturbed.work) },
      agents: last.agents,
      taken: this.#taken,
      session: this.#session,
      ms: Math.round(ms),
    });
  }
}
