import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { validateAnthropic } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import { type Charge, paymentService } from "../../../../examples/payment-service.ts";
import { openStore } from "../../src/index.ts";
import { place } from "../place.ts";

/** examples/payment.ts, killed at every instant: charged exactly once, and the model is told the truth. */

const EXAMPLE = resolve(import.meta.dirname, "../../../../examples/payment.ts");
const PRELOAD = join(import.meta.dirname, "kill-at-write.ts");

type Point = "asked to charge" | "charged" | "asked what happened";
/** Where a life ends: at a write to the journal, at a point of the service, or by itself. */
type Death = { readonly write: number; readonly written: "half" | "all" } | { readonly point: Point } | null;

const names = (death: Death): string =>
  death === null ? "no death" : "point" in death ? death.point : `write ${death.write} (${death.written} of it)`;

/** One world: a folder and a service that outlive the agent. */
async function world(keys: boolean, ledger: string, cwd: string) {
  let onPoint: ((point: Point) => unknown) | null = null;
  const service = await paymentService({ ledger, keys, at: (point) => onPoint?.(point) });
  return {
    charges: service.charges,
    close: service.close,
    /** Runs the agent until it has ended, or dies there. What it printed, or null if it was killed. */
    async live(death: Death): Promise<string | null> {
      const kill = death && "write" in death ? `${death.write} ${death.written}` : "0 all";
      const child = spawn(process.execPath, ["--conditions=holdfast-source", "--import", PRELOAD, EXAMPLE], {
        cwd,
        stdio: ["ignore", "pipe", "inherit"],
        env: {
          ...process.env,
          ...{ KILL_AT: kill, SERVICE_ADDRESS: service.address, REQUEST_MS: "50" },
          ...(keys ? {} : { SERVICE_WITHOUT_KEYS: "yes" }),
        },
      });
      const ended = new Promise<NodeJS.Signals | null>((done) => child.once("close", (_code, signal) => done(signal)));
      onPoint = async (point) => {
        if (!death || !("point" in death) || death.point !== point) return;
        onPoint = null;
        child.kill("SIGKILL");
        await ended;
      };
      const said = await text(child.stdout);
      const signal = await ended;
      if (signal === null) expect(said.trimEnd().split("\n").at(-1)).toBe("done");
      else expect(signal).toBe("SIGKILL");
      return signal === null ? said : null;
    },
  };
}

/** The lives of one agent, until it is done. Whether each of the deaths came. */
async function judge(keys: boolean, deaths: readonly Death[]): Promise<boolean> {
  using here = place();
  const at = await world(keys, join(here.path, "charges.jsonl"), here.path);
  try {
    for (const death of deaths) if ((await at.live(death)) !== null) return false;
    const what = deaths.map(names).join(", then ");
    expect(await at.live(null), what).not.toBe(null);
    await judgeEnd(at.charges(), here.path, what);
    return true;
  } finally {
    at.close();
  }
}

async function judgeEnd(charges: readonly Charge[], folder: string, what: string): Promise<void> {
  expect(charges, `${what}: charged once`).toMatchObject([{ receipt: "R-1", order: "invoice-7", cents: 4200 }]);
  await using store = await openStore(join(folder, "agent-data"));
  const { sessions } = await store.list();
  expect(sessions, what).toHaveLength(1);
  const { messages, state, entries } = await store.read(sessions[0]!.id);
  expect(state, what).toBe("idle");
  expect(validateAnthropic([...messages, { role: "user", content: "Thank you." }]), what).toEqual([]);
  const all = JSON.stringify(messages);
  expect(all, `${what}: the model knows the receipt`).toContain("Paid: R-1.");
  expect(all, what).not.toContain("outcome unknown");
  const ends = entries.filter(({ call }) => call !== undefined);
  for (const { message, source } of ends)
    expect(JSON.stringify(message).includes("Settled by asking the service"), what).toBe(source === "probe");
}

/** Every death of one life, after these deaths: at each write, until it has no more, and at each point. */
async function everyDeath(
  keys: boolean,
  before: readonly Death[],
  points: readonly Point[],
  ways: readonly ("half" | "all")[] = ["all"],
): Promise<Death[]> {
  const came: Death[] = [];
  for (const point of points) if (await judge(keys, [...before, { point }])) came.push({ point });
  for (const written of ways) {
    for (let write = 1; ; write++) {
      const death = { write, written };
      if (!(await judge(keys, [...before, death]))) break;
      came.push(death);
    }
  }
  return came;
}

describe.each([
  ["with idempotency keys", true],
  ["without", false],
])("a service %s", (_name, keys) => {
  test("killed at every instant of its life: charged once, and the model is told the truth", async () => {
    const came = await everyDeath(keys, [], ["asked to charge", "charged"], ["half", "all"]);
    // Prompt, call, start, outcome, answer, each half and whole, and the two points.
    expect(came.length).toBeGreaterThan(11);
  });

  test.each<Point>(["asked to charge", "charged"])(
    "killed when the service was %s, and again at every instant of the recovery",
    async (point) => {
      const came = await everyDeath(keys, [{ point }], ["asked what happened"]);
      expect(came.map(names)).toContain("asked what happened");
      expect(came.length).toBeGreaterThan(3);
    },
  );

  test("killed at the start of the call, whose request was never sent, and again while it is asked and while it pays", async () => {
    // The third write: behind the prompt and the call.
    const start = await deathOfStart(keys);
    const came = await everyDeath(keys, [start], ["asked what happened", "asked to charge", "charged"]);
    expect(came.map(names)).toEqual(expect.arrayContaining(["asked what happened", "asked to charge", "charged"]));
  });
});

/** The write of life 1 after which the call has started and the service was not asked. */
async function deathOfStart(keys: boolean): Promise<Death> {
  for (let write = 1; ; write++) {
    using here = place();
    const at = await world(keys, join(here.path, "charges.jsonl"), here.path);
    try {
      const death = { write, written: "all" } as const;
      expect(await at.live(death), `there is a write ${write}`).toBe(null);
      await using store = await openStore(join(here.path, "agent-data"));
      const { sessions } = await store.list();
      const calls = sessions[0] ? (await store.read(sessions[0].id)).calls : [];
      if (calls[0]?.state === "outcome-unknown") return death;
    } finally {
      at.close();
    }
  }
}
