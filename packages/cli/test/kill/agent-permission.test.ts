import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { seededRandom } from "@holdfast/testkit/internal/simulation";
import { expect, test } from "vitest";
import type { ChatEvent } from "../../src/host/host.ts";
import type { Home } from "../command.ts";
import { filesIn, homeFor, readingOf, type Task, violationsIn } from "./agent-chain.ts";

const KILLS = 8;
const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);

const tasks: readonly Task[] = [
  {
    name: "commands that a person allows, and one that is refused",
    prompt: "1. run echo one >> log.txt 2. run echo refuse >> log.txt 3. run sleep 0.1; echo three >> log.txt",
    files: {},
    args: [],
  },
  {
    name: "several at once",
    prompt: "rename oldName to newName in src",
    files: Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`src/${n}.ts`, `let oldName;\nlet x = oldName;\n`])),
    args: [],
  },
];

interface Life {
  readonly events: readonly ChatEvent[];
  readonly killed: boolean;
  readonly code: number | null;
  readonly ms: number;
  readonly stderr: string;
}

async function live(home: Home, id: string | null, prompt: string, killAfterMs: number | null): Promise<Life> {
  const program = join(import.meta.dirname, "agent-approving.ts");
  const child = spawn(process.execPath, ["--conditions=holdfast-source", program, id ?? "-", prompt], {
    cwd: home.work,
    env: { PATH: process.env["PATH"], ...home.env, HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: "1" },
  });
  child.stdin.end();
  const events: ChatEvent[] = [];
  let began = 0;
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (!line.endsWith("}")) return;
    if (events.push(JSON.parse(line) as ChatEvent) > 1) return;
    began = performance.now();
    if (killAfterMs !== null) setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return { events, killed: signal === "SIGKILL", code, ms: performance.now() - began, stderr };
}

test(`C37: killed at ${KILLS} random instants, what is allowed runs once and what is refused never (seed ${seed}: HOLDFAST_SEED repeats it)`, async () => {
  let kills = 0;
  const chain = async (task: Task): Promise<void> => {
    using undisturbed = homeFor(task);
    const whole = await live(undisturbed, null, task.prompt, null);
    expect(whole, `${task.name}: ${whole.stderr}`).toMatchObject({ code: 0 });
    const files = filesIn(undisturbed.work);
    expect(JSON.stringify(files)).not.toContain("refuse");
    const random = seededRandom(seed);
    while (kills < KILLS) {
      using home = homeFor(task);
      let id: string | null = null;
      for (let n = 0; ; n++) {
        const life = await live(home, id, task.prompt, n < 5 ? random.next() * whole.ms : null);
        const where = `${task.name}, seed ${seed}: ${life.stderr} ${JSON.stringify(life.events.slice(-2))}`;
        const [first] = life.events;
        if (first?.type === "session") id = first.session;
        if (life.killed) kills++;
        if (id === null) continue;
        const { reading } = await readingOf(home, id);
        expect(violationsIn(reading), where).toEqual([]);
        if (life.killed && reading.entries.length === 0) id = null;
        else if (!reading.interruption) break;
        else expect(life.killed, where).toBe(true);
      }
      expect(filesIn(home.work), `${task.name}, seed ${seed}`).toEqual(files);
    }
  };
  await Promise.all(tasks.map(chain));
});
