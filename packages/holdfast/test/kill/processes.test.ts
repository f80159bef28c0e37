import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  type Attempt,
  type Command,
  type LabEvent,
  Log,
  openSpec,
  type Refusal,
  type StoreSpec,
  temporaryPlace,
  Victim,
  type Worker,
  type WorkerJob,
  warmWorker,
} from "@holdfast/testkit/internal/kill";
import { newId } from "holdfast";
import type { Verification } from "holdfast/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../seed.ts";

const seed = seedOf(import.meta.url, "kill");
const attempt = (id: number): Attempt => ({ id, kind: "append", parts: 1 + (id % 3), chars: 200 });

/** Every file below a folder with its bytes. Sessions only: a lease file is nobody's to open (S13). */
function bytesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, hash(readFileSync(join(folder, name)))]));
}
const hash = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

describe("two at once, with real processes", () => {
  const place = temporaryPlace();
  const spec: StoreSpec = { module: "folder", place: place.path, durability: "power" };
  let worker: Worker;

  beforeAll(async () => {
    worker = await warmWorker(spec);
  });
  afterAll(() => place[Symbol.dispose]());

  /** A process that does what it is told. */
  async function puppet(session: string): Promise<Victim> {
    const victim = new Victim(worker.program, { store: spec, session } satisfies WorkerJob, worker.spawn);
    await victim.until("answer");
    return victim;
  }

  /** Tells it to do something, and waits for the event that says it is done. */
  async function ask<K extends LabEvent["e"]>(
    victim: Victim,
    command: Command,
    answer: K,
  ): Promise<Extract<LabEvent, { e: K }>> {
    const from = victim.events.length;
    victim.say(command);
    return victim.until(answer, () => true, from);
  }
  const refusal = async (victim: Victim, command: Command): Promise<Refusal> =>
    (await ask(victim, command, "answer")).value as Refusal;

  test("C15: the second process is told who has the session, and gets it when the first is killed", async () => {
    const id = newId();
    await using first = await puppet(id);
    await using second = await puppet(id);
    await ask(first, { do: "create", attemptId: 1 }, "opened");
    const told = await refusal(second, { do: "open" });
    expect(told).toMatchObject({ code: "SESSION_BUSY", facts: { sameProcess: false, holder: { pid: first.pid } } });
    expect(told.message).toContain(String(first.pid));

    first.kill();
    await first.died;
    expect(await ask(second, { do: "open" }, "opened")).toMatchObject({ made: false, unclean: true });
    await ask(second, { do: "append", attempt: attempt(2) }, "ack");
  });

  test("C15: a stopped owner still owns it, and goes on when it wakes", async () => {
    const id = newId();
    await using first = await puppet(id);
    await using second = await puppet(id);
    await ask(first, { do: "create", attemptId: 1 }, "opened");
    first.kill("SIGSTOP");
    expect(await refusal(second, { do: "open" })).toMatchObject({ code: "SESSION_BUSY" });
    expect((await ask(second, { do: "holder" }, "answer")).value).toMatchObject({ pid: first.pid });
    first.kill("SIGCONT");
    await ask(first, { do: "append", attempt: attempt(2) }, "ack");
    expect(await refusal(second, { do: "open" })).toMatchObject({ code: "SESSION_BUSY" });
  });

  test("C15: reading, verifying, listing and copying in the writer's own process does not give the lease away", async () => {
    const id = newId();
    using copies = temporaryPlace();
    await using store = await openSpec(spec);
    await using other = await puppet(id);
    const journal = await store.create(id, [{ kind: "lab" }]);
    await store.read(id);
    await store.verify(id);
    await store.list();
    await store.holder(id);
    for await (const record of store.history(id)) expect(record.seq).toBeGreaterThan(0);
    cpSync(join(place.path, "store", "sessions", id), copies.path, { recursive: true });
    await store.gc();
    expect(await refusal(other, { do: "open" })).toMatchObject({
      code: "SESSION_BUSY",
      facts: { holder: { pid: process.pid } },
    });
    await journal.append({ kind: "lab" });
    await journal.close();
    await ask(other, { do: "open" }, "opened");
  });

  test("C16: list, verify and read of a live session disturb nothing; delete and pack are refused", async () => {
    const id = newId();
    await using writer = await puppet(id);
    await using other = await puppet(id);
    await ask(writer, { do: "create", attemptId: 1 }, "opened");
    for (let n = 2; n < 12; n++) await ask(writer, { do: "append", attempt: attempt(n) }, "ack");
    const session = join(place.path, "store", "sessions", id);
    const before = bytesOf(session);

    await ask(other, { do: "list" }, "answer");
    const verified = (await ask(other, { do: "verify" }, "answer")).value as Verification;
    expect(verified).toMatchObject({ id, beingWritten: true, cutBytes: 0, damaged: [], missing: [] });
    expect((await ask(other, { do: "read" }, "answer")).value).toMatchObject({ recovery: { cutBytes: 0 } });
    expect(await refusal(other, { do: "delete" })).toMatchObject({ code: "SESSION_BUSY" });
    const packing = await refusal(other, { do: "pack" });
    expect(packing).toMatchObject({ code: "SESSION_BUSY" });
    await ask(other, { do: "gc" }, "answer");

    expect(bytesOf(session)).toEqual(before);
    await ask(writer, { do: "append", attempt: attempt(12) }, "ack");
    await ask(writer, { do: "close" }, "closed");
    const after = (await ask(other, { do: "verify" }, "answer")).value as Verification;
    expect(after).toMatchObject({ beingWritten: false, unclean: false, damaged: [], missing: [] });
  });

  test("C17: a process that starts between creation and first prompt tidies nothing away", async () => {
    const id = newId();
    await using writer = await puppet(id);
    await ask(writer, { do: "create", attemptId: 1 }, "opened");
    await using second = await puppet(newId());
    await ask(second, { do: "list" }, "answer");
    await ask(second, { do: "gc" }, "answer");
    await ask(second, { do: "create", attemptId: 1 }, "opened");
    await ask(second, { do: "gc" }, "answer");
    await ask(writer, { do: "append", attempt: attempt(2) }, "ack");
    await ask(writer, { do: "close" }, "closed");
    await using store = await openSpec(spec);
    expect((await store.verify(id)).records).toBeGreaterThan(3);
  });

  test("C18: a follower sees every record once, in order, while the writer is killed and started again", async () => {
    const id = newId();
    const log = new Log();
    await using maker = await puppet(id);
    await ask(maker, { do: "create", attemptId: 1 }, "opened");
    await ask(maker, { do: "close" }, "closed");
    for (const event of maker.events) log.hear(event);

    await using follower = await puppet(id);
    follower.say({ do: "follow" } satisfies Command);
    for (let life = 0; life < 6; life++) {
      const workload = { seed, life, profile: "mixed" as const, nextId: log.nextId, retry: [] };
      log.nextLife();
      await using writer = new Victim(worker.program, { store: spec, session: id, workload }, worker.spawn);
      writer.onEvent((event) => log.hear(event));
      let attempts = 0;
      const enough = writer.until("attempt", () => ++attempts >= 12 + 20 * life);
      await enough;
      writer.kill();
      await writer.died;
    }
    await using store = await openSpec(spec);
    const { journal } = await store.open(id);
    await journal.append({ kind: "lab" });
    await journal.close();
    const there = await Array.fromAsync(store.history(id), ({ seq, crc }) => ({ seq, crc }));
    await follower.until("seen", ({ seq }) => seq === there.at(-1)!.seq);
    const seen = follower.events.flatMap((event) => (event.e === "seen" ? [{ seq: event.seq, crc: event.crc }] : []));
    expect(seen).toEqual(there);
    expect(log.acknowledged).toBeGreaterThan(50);
  });
});
