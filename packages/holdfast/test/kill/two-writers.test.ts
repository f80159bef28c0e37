import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Lines, temporaryPlace } from "@holdfast/testkit/internal/kill";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import type { Acknowledged, Contender } from "./contender.ts";

/**
 * P1, P6: several processes want to write to one session, and in each of them a thread opens, reads and closes every
 * file of the store without end, which gives POSIX locks away. All are killed in the end. Everything that anybody was
 * told is there, once, in the order in which it was told.
 */

const PROCESSES = 3;
/** HOLDFAST_CONTENTION=10 goes on for ten times as long. */
const SCALE = Number(process.env["HOLDFAST_CONTENTION"] ?? 1);
const ENOUGH = 400 * SCALE;
const TIME_MS = 6_000 * SCALE;

test.each([
  ["power", "all"],
  ["power", "weak"],
  ["power", "none"],
  ["process", "all"],
  ["process", "weak"],
  ["process", "none"],
] as const)("%s, %s locks", async (durability, locks) => {
  using place = temporaryPlace();
  const root = join(place.path, "store");
  const id = newId();
  const store = await openFolderStore(root, { catalogue: false });
  await (await store.create(id, [{ kind: "session" }])).close();

  const told: Acknowledged[] = [];
  const errors: string[] = [];
  const children = Array.from({ length: PROCESSES }, (_, i): ChildProcess => {
    const job: Contender = { root, id, name: `p${i}`, durability, locks };
    const child = spawn(
      process.execPath,
      ["--conditions=holdfast-source", join(import.meta.dirname, "contender.ts"), JSON.stringify(job)],
      { stdio: ["ignore", "ignore", "pipe", "pipe"] },
    );
    const lines = new Lines<Acknowledged>();
    child.stdio[3]!.on("data", (chunk: Buffer) => told.push(...lines.take(chunk.toString())));
    child.stderr!.on("data", (chunk: Buffer) => errors.push(chunk.toString()));
    return child;
  });
  const ended = children.map((child) => new Promise((resolve) => child.on("close", resolve)));
  const until = performance.now() + TIME_MS;
  // However slow the machine is, something must have been told.
  const isOver = () => told.length >= ENOUGH || (told.length > 50 && performance.now() > until);
  while (!isOver() && errors.length === 0) await sleep(20);
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(ended);
  expect(errors.join("")).toBe("");
  expect(told.length).toBeGreaterThan(0);

  // A writer after all of them, so that the journal is healed once more.
  const { journal } = await store.open(id);
  await journal.append({ kind: "message" });
  await journal.close();
  const found = new Map<string, number[]>();
  for await (const record of store.history(id)) {
    if (record.kind !== "message" || typeof record["name"] !== "string") continue;
    const numbers = found.get(record["name"]) ?? [];
    found.set(record["name"], numbers);
    numbers.push(record["n"] as number);
  }
  for (const [name, numbers] of found) {
    expect(numbers, `${name}: once, in order`).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  }
  const lost = told.filter(({ name, n }) => !found.get(name)?.includes(n));
  expect(lost, `${told.length} were acknowledged`).toEqual([]);
  const { damaged, missing } = await store.verify(id);
  expect({ damaged, missing }).toEqual({ damaged: [], missing: [] });
  await store.close();
});
