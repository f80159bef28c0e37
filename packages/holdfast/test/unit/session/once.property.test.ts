import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as tick } from "node:timers/promises";
import { type Random, seededRandom } from "@holdfast/testkit/internal/simulation";
import { openStore, type Session } from "holdfast";
import { expect, test } from "vitest";
import { seedOf } from "../../seed.ts";

const first = seedOf(import.meta.url, "unit");

type Any = Session<unknown>;
const KEYS = ["a", "b", "c", "d"];
const EXPECTED = new Set(["RECORD_INVALID", "SESSION_CLOSED", "JOURNAL_CLOSED"]);

/** Makes calls at random, inside one another too, and notes what the rule forbids. */
class Caller {
  readonly #random: Random;
  /** Keys whose call is known to be recorded: its `once` has resolved, or its work has seen its record acknowledged. */
  readonly known: Set<string>;
  readonly broken: string[] = [];

  constructor(random: Random, known: Set<string>) {
    this.#random = random;
    this.known = known;
  }

  async call(session: Any, depth: number): Promise<void> {
    const key = this.#random.pick(KEYS);
    try {
      await session.once(key, "", () => this.#work(session, key, depth), { streams: this.#random.below(3) === 0 });
      this.known.add(key);
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string };
      if (message !== "work failed" && !EXPECTED.has(code ?? "")) throw error;
    }
  }

  async #work(session: Any, key: string, depth: number): Promise<void> {
    if (this.known.has(key)) this.broken.push(key);
    for (let steps = this.#random.below(4); steps > 0; steps -= 1) {
      const what = this.#random.below(5);
      if (what === 0) throw new Error("work failed");
      if (what === 1) await tick();
      if (what === 2 && depth < 3) await this.call(session, depth + 1);
      if (what === 3 && depth < 3) await Promise.all([this.call(session, depth + 1), this.call(session, depth + 1)]);
      if (what === 4) {
        await session.note("by", key);
        this.known.add(key);
      }
    }
  }
}

test("a known key's work is not called: at once, nested, rejecting, across a close in the middle", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-once-"));
  const runs = 60 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);
  for (let seed = first; seed < first + runs; seed += 1) {
    const random = seededRandom(seed);
    await using store = await openStore(seed % 2 ? "memory:" : `${folder}/store`, { durability: "process" });
    let session = await store.create<unknown>({ dialect: "anthropic" });
    const { id } = session;
    const caller = new Caller(random, new Set());
    for (let life = 0; life < 3; life += 1) {
      const calls = Array.from({ length: 1 + random.below(12) }, () => caller.call(session, 0));
      for (let ticks = random.below(4); ticks > 0; ticks -= 1) await tick();
      await session.close();
      await Promise.all(calls);
      session = await store.resume<unknown>(id);
    }
    await session.close();
    expect(caller.broken, `seed ${seed}`).toEqual([]);
    const records = await Array.fromAsync(store.history(id));
    const keys = records.flatMap(({ key }) => key ?? []);
    expect(new Set(keys).size, `seed ${seed}`).toBe(keys.length);
    for (const key of caller.known) expect(await store.once(id, key, ""), `seed ${seed}, ${key}`).not.toBe(null);
  }
  rmSync(folder, { recursive: true });
});
