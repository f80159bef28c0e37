/**
 * What `holdfast watch` costs: the processor while 1,000 files do not change, and how soon a new line is kept. Run it
 * on a built clone:
 *
 *     npx -c 'node --conditions=holdfast-source bench/watch.ts [files] [seconds]'
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "./statistics.ts";

const [files = 1_000, seconds = 60] = process.argv.slice(2).map(Number);
const LINES = 40;
const NEW_LINES = 30;
const COMMAND = join(import.meta.dirname, "../packages/cli/bundle/bin.js");

const home = mkdtempSync(join(tmpdir(), "holdfast-bench-watch-"));
const store = join(home, "store");
try {
  const sessions = Array.from({ length: files }, (_, at) => writeSession(at));
  const begin = performance.now();
  const watch = spawn(process.execPath, [COMMAND, "watch", "--store", store], {
    env: { PATH: process.env["PATH"], HOME: home, XDG_STATE_HOME: join(home, "state"), HOLDFAST_CONFIG: "" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  watch.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  while (!said.includes("Following")) {
    if (watch.exitCode !== null) throw new Error(`holdfast watch ended: ${said}`);
    await sleep(100);
  }
  print(`${files} sessions are kept after`, (performance.now() - begin) / 1000, "s");
  // What follows a start, such as the collection of garbage, is no cost of waiting.
  await sleep(5_000);
  const before = processorMs(watch.pid!);
  await sleep(seconds * 1000);
  print("processor while nothing changes", (processorMs(watch.pid!) - before) / (seconds * 10), "% of a core");
  print("memory", statusOf(watch.pid!, "VmRSS") / 1024, "MB");
  const kept: number[] = [];
  const brought: number[] = [];
  for (let n = 0; n < NEW_LINES; n++) {
    const { path, id } = sessions[(n * 37) % sessions.length]!;
    const journal = journalSize();
    const line = record(id, `news ${n}`, null);
    const at = performance.now();
    appendFileSync(path, line);
    const size = statSync(path).size;
    await until(() => sizeOfCopy(id) === size);
    kept.push(performance.now() - at);
    await until(() => journalSize() > journal);
    brought.push(performance.now() - at);
    await sleep(50);
  }
  for (const [what, times] of [
    ["a new line is in the copy of its file after", kept],
    ["and in its conversation after", brought],
  ] as const)
    print(what, quantile(times, 0.5), `ms (median; at most ${Math.max(...times).toFixed(0)})`);
  watch.kill("SIGTERM");
  await new Promise((resolve) => watch.on("close", resolve));
} finally {
  rmSync(home, { recursive: true, force: true });
}

function writeSession(at: number): { readonly path: string; readonly id: string } {
  const id = randomUUID();
  const folder = join(home, ".claude/projects", `-home-you-project-${at % 20}`);
  mkdirSync(folder, { recursive: true });
  const lines = [];
  let parent: string | null = null;
  for (let n = 0; n < LINES; n++) {
    const uuid = randomUUID();
    lines.push(record(id, `message ${n} of ${at}`, parent, uuid));
    parent = uuid;
  }
  const path = join(folder, `${id}.jsonl`);
  writeFileSync(path, lines.join(""));
  return { path, id };
}

function record(sessionId: string, text: string, parentUuid: string | null, uuid: string = randomUUID()): string {
  const message = { role: "user", content: text };
  const facts = { parentUuid, isSidechain: false, type: "user", message, uuid, sessionId, version: "2.1.328" };
  return `${JSON.stringify({ ...facts, timestamp: new Date().toISOString(), cwd: "/home/you", userType: "external" })}\n`;
}

/** The size of the kept copy of a session; -1 if there is none. */
function sizeOfCopy(id: string): number {
  for (const name of readdirSync(join(store, "outputs")))
    if (name.includes("-")) {
      const found = statSync(join(store, "outputs", name, "originals", `${id}.jsonl`), { throwIfNoEntry: false });
      if (found) return found.size;
    }
  return -1;
}

function journalSize(): number {
  return readdirSync(join(store, "sessions"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(5);
}

function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function statusOf(pid: number, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

function print(what: string, value: number, unit: string): void {
  process.stdout.write(`${what}: ${value.toFixed(2)} ${unit}\n`);
}
