import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, openStore } from "holdfast";
import { afterAll, describe, expect, test } from "vitest";
import { place } from "../place.ts";
import { ANSWER, effectsIn, live, type Orders } from "./probe-agent.ts";

const AGENT = join(import.meta.dirname, "probe-agent.ts");
/** The agents' compiled code: with it they start in half the time. */
const compiled = place();
afterAll(() => compiled[Symbol.dispose]());

type Death = Pick<Orders, "killAt" | "written" | "inProbe" | "inTool">;

/** Whether it was killed. */
async function isKilled(orders: Orders): Promise<boolean> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", AGENT, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { NODE_COMPILE_CACHE: compiled.path, ...process.env },
  });
  const ended = new Promise<NodeJS.Signals | null>((done) => child.once("close", (_code, signal) => done(signal)));
  const said = await text(child.stdout);
  const signal = await ended;
  expect([said, signal]).toEqual(signal === null ? ["done\n", null] : ["", "SIGKILL"]);
  return signal !== null;
}

/** Dies these deaths one after another, and lives on in this process. Whether each of them came. */
async function judge(kind: "folder" | "sqlite", settles: boolean, deaths: readonly Death[]): Promise<boolean> {
  using here = place();
  const path = join(here.path, "store");
  const address = kind === "sqlite" ? `sqlite:${path}` : path;
  const orders: Orders = { address, effects: join(here.path, "effects"), settles };
  for (const death of deaths) if (!(await isKilled({ ...orders, ...death }))) return false;
  const what = JSON.stringify(deaths);
  await live(orders);
  const effects = effectsIn(orders.effects);
  expect(effects.map((line) => line.split(" ")[1]).sort(), `${what}: each took effect once`).toEqual(["a", "b", "c"]);
  await using store = await openStore(address);
  const { sessions } = await store.list();
  const done = sessions.filter(({ turns }) => turns > 0);
  expect(done, what).toHaveLength(1);
  const { id } = done[0]!;
  const { messages, state, calls } = await store.read<AnthropicMessage>(id);
  expect({ state, calls }, what).toEqual({ state: "idle", calls: [] });
  expect(validateAnthropic([...messages, { role: "user", content: "Thank you." }]), what).toEqual([]);
  const told = JSON.stringify(messages);
  expect(told, what).toContain(ANSWER);
  for (const effect of effects) expect(told, `${what}: the model knows each effect`).toContain(effect);
  expect(told, what).not.toContain("outcome unknown");
  const keys = new Map<unknown, Set<unknown>>();
  let ends = 0;
  for await (const record of store.history(id)) {
    if (record.kind === "tool.started")
      keys.set(record["call"], (keys.get(record["call"]) ?? new Set()).add(record["idempotencyKey"]));
    if (record.kind === "tool.ended") ends += 1;
  }
  expect(ends, `${what}: each outcome is recorded once`).toBe(3);
  expect(
    [...keys.values()].map(({ size }) => size),
    `${what}: one key for each call`,
  ).toEqual([1, 1, 1]);
  return true;
}

const writes = function* (written: Orders["written"] = "all"): Generator<Death> {
  for (let killAt = 1; ; killAt++) yield { killAt, written: written! };
};

describe.each([true, false])("settled before the turn is resumed: %s", (settles) => {
  test.each(["all", "half"] as const)("P5: SIGKILL at every write (%s of it written)", async (written) => {
    let count = 0;
    for (const death of writes(written)) {
      if (!(await judge("folder", settles, [death]))) break;
      count += 1;
    }
    expect(count, "prompt, calls, three starts, three ends, the answer").toBeGreaterThan(6);
  });

  test("P5: SIGKILL at every write of the recovery, after a death among the starts and one among the ends", async () => {
    for (const first of [5, 7]) {
      let count = 0;
      for (const death of writes()) {
        if (!(await judge("folder", settles, [{ killAt: first, written: "all" }, death]))) break;
        count += 1;
      }
      expect(count).toBeGreaterThan(1);
    }
  });

  test.each(["folder", "sqlite"] as const)("P3: SIGKILL while the probes are asked, and again (%s)", async (kind) => {
    for (const when of ["before", "after"] as const) {
      const inProbe = { nth: 1, when };
      expect(await judge(kind, settles, [{ inTool: "b" }, { inProbe }, { inProbe }])).toBe(true);
    }
  });
});
