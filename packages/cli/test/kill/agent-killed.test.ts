import { seededRandom } from "@holdfast/testkit/internal/simulation";
import { describe, expect, test } from "vitest";
import { itemsOf } from "../../src/transcript/items.ts";
import {
  acknowledged,
  copyOf,
  filesIn,
  homeFor,
  type Life,
  live,
  readingOf,
  sessionOf,
  type Task,
  violationsIn,
} from "./agent-chain.ts";

const KILLS = 50;
const CHAINS = 4;
/** So often at most is one run killed. */
const KILLS_OF_ONE = 8;

const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);

const sources = Object.fromEntries(
  Array.from({ length: 6 }, (_, n) => [`src/part${n}.ts`, `export const oldName${n} = oldName;\n// oldName again\n`]),
);
const words = Object.fromEntries(
  Array.from({ length: 8 }, (_, n) => [`docs/page${n}.md`, `${"word ".repeat(40 + n)}\n`.repeat(8)]),
);

const tasks: readonly Task[] = [
  {
    name: "files",
    prompt:
      '1. write a.txt: one 2. append a.txt: two 3. edit a.txt: replace "one" with "eins" 4. write b/c.txt: three 5. append a.txt: four',
    files: {},
    args: ["--allow", "write", "--allow", "edit"],
  },
  {
    name: "rename",
    prompt: "rename oldName to newName in src",
    files: sources,
    args: ["--allow", "edit", "--allow", "write"],
  },
  {
    name: "commands",
    prompt:
      "1. run echo one >> log.txt 2. run sleep 0.1 && echo two >> log.txt 3. run echo three >> log.txt 4. run sleep 0.2; echo four >> log.txt",
    files: {},
    args: ["--allow", "shell"],
  },
  {
    name: "sub-agents",
    prompt: "delegate: 1. run sleep 0.1; echo one >> one.txt 2. count words in docs 3. append two.txt: two",
    files: words,
    args: ["--allow", "shell", "--allow", "write", "--allow", "edit"],
  },
  {
    name: "compaction",
    prompt: "count words in docs to report.md",
    files: words,
    args: ["--allow", "write", "--window-tokens", "4000"],
  },
];

describe(`the agent, killed at ${KILLS} random instants and resumed (seed ${seed}: HOLDFAST_SEED repeats it)`, () => {
  test("ends as an undisturbed run: files, effects, acknowledged items, valid messages", async () => {
    const undisturbed = new Map<string, { files: Record<string, string>; ms: number }>();
    for (const task of tasks) {
      using home = homeFor(task);
      const life = await live(home, [...task.args, task.prompt], null);
      expect(life, `${task.name}: ${life.stderr}`).toMatchObject({ code: 0 });
      undisturbed.set(task.name, { files: filesIn(home.work), ms: life.ms });
    }
    let kills = 0;
    let chain = 0;
    const work = async (): Promise<void> => {
      while (kills < KILLS) {
        const n = chain++;
        const task = tasks[n % tasks.length]!;
        const { files, ms } = undisturbed.get(task.name)!;
        const times = await killed(task, files, ms, n);
        kills += times;
      }
    };
    await Promise.all(Array.from({ length: CHAINS }, work));
    expect(kills).toBeGreaterThanOrEqual(KILLS);
  });
});

/** Kills one run again and again, until it comes to its end. Answers how often. */
async function killed(task: Task, files: Record<string, string>, ms: number, n: number): Promise<number> {
  const random = seededRandom(seed + n);
  using home = homeFor(task);
  const lives: Life[] = [];
  const where = (): string =>
    `${task.name}, seed ${seed}, chain ${n}: ${lives.map((one) => `${one.code} ${one.events.at(-1)?.type} ${one.stderr}`).join(" | ")}`;
  try {
    for (;;) {
      const id = sessionOf(lives);
      const args = id === null ? [...task.args, task.prompt] : [...task.args, "--resume", id, "--finish"];
      const after = lives.length < KILLS_OF_ONE ? random.next() * ms : null;
      const life = await live(home, args, after);
      lives.push(life);
      const session = sessionOf(lives);
      if (session !== null) {
        const { reading } = await readingOf(home, session);
        expect(violationsIn(reading), where()).toEqual([]);
        // Killed behind the end of the turn: there is nothing to finish.
        if (life.killed && !reading.interruption && reading.entries.length > 0) break;
        if (life.killed && reading.entries.length === 0) lives.length = 0;
      }
      if (life.killed) continue;
      expect(life.code, where()).toBe(0);
      break;
    }
    expect(filesIn(home.work), where()).toEqual(files);
    const { reading, ids } = await readingOf(home, sessionOf(lives)!);
    expect(reading.interruption, where()).toBeNull();
    const shown = new Map(itemsOf(reading).map((item) => [item.id, item]));
    for (const [key, item] of acknowledged(lives)) {
      if (item.kind === "note" || (item.kind !== "call" && item.kind !== "prompt" && item.incomplete)) continue;
      expect(ids, `${where()} lost ${JSON.stringify(item)}`).toContain(key.replace(/\.\d+$/, ""));
      const now = shown.get(key);
      if (item.kind !== "call" || !now) continue;
      if (item.state === "done" || item.state === "failed")
        expect(now, where()).toMatchObject({ state: item.state, output: item.output });
    }
    return lives.filter((life) => life.killed).length;
  } catch (error) {
    if (process.env["HOLDFAST_KEEP"]) copyOf(home, `${process.env["HOLDFAST_KEEP"]}/${task.name}-${n}`);
    throw error;
  }
}
