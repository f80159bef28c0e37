import { spawn } from "node:child_process";
import { join } from "node:path";
import {
  type Command,
  type LabEvent,
  openSpec,
  type Refusal,
  runCampaign,
  type StoreSpec,
  temporaryPlace,
  Victim,
  type WorkerJob,
} from "@holdfast/testkit/internal/kill";
import { newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import type { Runtime } from "../../../../scripts/runtimes.ts";
import { place } from "../place.ts";
import { seedOf } from "../seed.ts";
import { builtWorker, everyRuntime, needsRuntime, otherRuntimes, thisNode } from "./run.ts";

const seed = seedOf(import.meta.url, "runtimes");

describe.each(everyRuntime)("$name: SIGKILL while it writes", (runtime) => {
  test.for([
    { module: "folder", durability: "power", kills: 16 },
    { module: "folder", durability: "process", kills: 8 },
    { module: "sqlite", durability: "power", kills: 12 },
  ] as const)(
    "P1: $module, $durability: acknowledged ⊆ recovered ⊆ attempted, as Node reads it",
    async ({ module, durability, kills }, context) => {
      needsRuntime(context, runtime);
      using here = temporaryPlace();
      const store = { module, place: here.path, durability, segmentBytesMax: 256 * 1024 };
      const worker = { program: builtWorker, spawn: { runtime: runtime.command } };
      const receipt = await runCampaign({ store, seed, kills, worker });
      expect(receipt.faults).toEqual([]);
      expect(receipt.kills).toBeGreaterThanOrEqual(kills);
      expect(receipt.acknowledged).toBeGreaterThan(0);
      expect(receipt.recovered).toBeGreaterThanOrEqual(receipt.acknowledged);
    },
  );
});

/** A process on a runtime that does what it is told. */
async function puppet({ command }: Runtime, store: StoreSpec, session: string): Promise<Victim> {
  const victim = new Victim(builtWorker, { store, session } satisfies WorkerJob, { runtime: command });
  await victim.until("answer");
  return victim;
}

async function ask<K extends LabEvent["e"]>(
  victim: Victim,
  command: Command,
  answer: K,
): Promise<Extract<LabEvent, { e: K }>> {
  const from = victim.events.length;
  victim.say(command);
  return victim.until(answer, () => true, from);
}

const pairs = otherRuntimes.flatMap((other) => [
  { holds: thisNode, comes: other },
  { holds: other, comes: thisNode },
]);

describe.each(pairs)("P6: one writer: $holds.name has the session, and $comes.name wants it", ({ holds, comes }) => {
  test("sqlite: the store is refused by name, and free when the holder is killed", async (context) => {
    needsRuntime(context, holds);
    needsRuntime(context, comes);
    using here = place();
    const file = join(here.path, "store.db");
    const holder = writer(holds, file, ["1", "0", "nobody"]);
    await holder.began;
    expect(await writer(comes, file, ["1", "10", "nobody"]).ended).toEqual(new Map([["refused", holder.pid]]));
    holder.kill();
    await holder.ended.catch(() => null);
    expect([...(await writer(comes, file, ["1", "10", "nobody"]).ended).values()]).toEqual([10]);
    await using store = await openSqliteStore(file);
    const { sessions } = await store.list();
    expect(sessions.map(({ closed }) => closed)).toEqual([true, false]);
    for (const { id } of sessions) expect(await store.verify(id)).toMatchObject({ damaged: [], missing: [] });
  });

  test("folder: refused by name, and free when the holder is killed", async (context) => {
    needsRuntime(context, holds);
    needsRuntime(context, comes);
    using here = temporaryPlace();
    const store: StoreSpec = { module: "folder", place: here.path, durability: "power" };
    const id = newId();
    await using holder = await puppet(holds, store, id);
    await using comer = await puppet(comes, store, id);
    await ask(holder, { do: "create", attemptId: 1 }, "opened");
    const attempt = { id: 2, kind: "append", parts: 2, chars: 300 } as const;
    await ask(holder, { do: "append", attempt }, "ack");

    const told = (await ask(comer, { do: "open" }, "answer")).value as Refusal;
    expect(told).toMatchObject({
      code: "SESSION_BUSY",
      facts: { sameProcess: false, holder: { pid: holder.pid } },
    });
    expect((await ask(comer, { do: "holder" }, "answer")).value).toMatchObject({ pid: holder.pid });
    // What is acknowledged is there for the other runtime, while its writer lives.
    const read = (await ask(comer, { do: "read" }, "answer")).value as { records: number };
    expect(read.records).toBeGreaterThanOrEqual(3);

    holder.kill();
    await holder.died;
    expect(await ask(comer, { do: "open" }, "opened")).toMatchObject({ made: false, unclean: true, damaged: 0 });
    await ask(comer, { do: "append", attempt: { ...attempt, id: 3 } }, "ack");
    await ask(comer, { do: "close" }, "closed");

    // And the runtime that lost it can have it again, after an orderly end.
    await using again = await puppet(holds, store, id);
    expect(await ask(again, { do: "open" }, "opened")).toMatchObject({ unclean: false, damaged: 0 });
    await ask(again, { do: "close" }, "closed");
    await using lab = await openSpec(store);
    expect(await lab.verify(id)).toMatchObject({ damaged: [], missing: [], unclean: false });
  });
});

/** Any `close` of a file in a process drops the POSIX locks that the process has on it. The hard lock stays. */
describe.each(everyRuntime)("$name: P1: an SQLite store whose files other code opens and closes", (runtime) => {
  test.for(["this thread", "a worker"])(
    "closed by %s: others are kept out, and nothing is lost",
    async (closer, context) => {
      needsRuntime(context, runtime);
      using here = place();
      const file = join(here.path, "store.db");
      const stays = writer(runtime, file, ["1", "0", closer]);
      await stays.began;
      for (const comer of [thisNode, runtime])
        expect(await writer(comer, file, ["2", "10", "nobody"]).ended).toEqual(new Map([["refused", stays.pid]]));
      stays.end();
      const [[id, last]] = [...(await stays.ended)] as [[string, number]];
      await using store = await openSqliteStore(file);
      const found = (await store.read(id)).records.flatMap(({ i }) => (i === undefined ? [] : [i]));
      expect(found).toEqual(Array.from({ length: last }, (_, i) => i + 1));
    },
  );
});

interface Writer {
  readonly pid: number;
  /** Something is acknowledged, or it has ended. */
  readonly began: Promise<void>;
  /** The highest number that was acknowledged, by session. */
  readonly ended: Promise<Map<string, number>>;
  end(): void;
  kill(): void;
}

/** `sqlite-closer.ts` of the layer `kill`, on a runtime. */
function writer({ command }: Runtime, file: string, args: readonly string[]): Writer {
  const [runtime, ...flags] = command as [string, ...string[]];
  const program = join(import.meta.dirname, "../kill/sqlite-closer.ts");
  const child = spawn(runtime, [...flags, program, file, "power", ...args], {
    // Only one that stays is told when to end: Bun does not exit while its input is open and unread.
    stdio: [args[1] === "0" ? "pipe" : "ignore", "pipe", "inherit"],
    env: { ...process.env, HOLDFAST_REPORTS_FD: "1" },
  });
  let said = "";
  const began = new Promise<void>((resolve) => {
    child.stdout!.once("data", () => resolve());
    child.once("close", () => resolve());
  });
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = new Promise<Map<string, number>>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code !== 0) return reject(new Error(`${runtime} ended with ${code ?? signal}`));
      const lines = said.split("\n").slice(0, -1);
      resolve(new Map(lines.map((line) => line.split(" ")).map(([id, i]) => [id!, Number(i)])));
    });
  });
  const { pid } = child as { pid: number };
  return { pid, began, ended, end: () => child.stdin?.end(), kill: () => void child.kill("SIGKILL") };
}
