import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import { expectNothingLost, interruptionOf, recordsOf, signalsOf, startAgent } from "./guard-journal.ts";

describe("C6: a signal during a turn", () => {
  test.each(["SIGTERM", "SIGHUP"] as const)(
    "%s: recorded as the last word, and the parent sees that signal",
    async (signal) => {
      await using agent = startAgent("plain");
      const [id] = agent.job.ids as [string];
      await agent.process.until("ready");
      agent.process.kill(signal);
      expect(await agent.process.died).toEqual({ code: null, signal });
      expect(agent.process.stderr).toBe("");
      const records = await recordsOf(agent.job, id);
      expect(records.at(-1)).toMatchObject({ kind: "signal", signal });
      expect(signalsOf(records)).toEqual([{ signal }]);
      expectNothingLost(agent.process.said, id, records);
      expect(await interruptionOf(agent.job, id)).toEqual({ kind: "signal", signal });
    },
  );

  test("SIGINT stays the host's: nothing recorded, the default effect", async () => {
    await using agent = startAgent("plain");
    await agent.process.until("ready");
    agent.process.kill("SIGINT");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGINT" });
    expect(signalsOf(await recordsOf(agent.job, agent.job.ids[0]!))).toEqual([]);
  });

  test("thirty sessions in one process: each is recorded, one listener, no warning", async () => {
    await using agent = startAgent("plain", { ids: Array.from({ length: 30 }, () => newId()) });
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    expect(agent.process.stderr).toBe("");
    for (const id of agent.job.ids) {
      const records = await recordsOf(agent.job, id);
      expect(signalsOf(records)).toEqual([{ signal: "SIGTERM" }]);
      expectNothingLost(agent.process.said, id, records);
    }
  });

  test.each(["fails", "rejects"] as const)(
    "a session before it that %s does not keep the next from being recorded",
    async (manner) => {
      await using agent = startAgent("plain", { failing: { ids: [newId(), newId()], manner } });
      await agent.process.until("ready");
      agent.process.kill("SIGTERM");
      expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
      expect(agent.process.stderr).toBe("");
      expect(signalsOf(await recordsOf(agent.job, agent.job.ids[0]!))).toEqual([{ signal: "SIGTERM" }]);
    },
  );

  test("a store without a synchronous way: the process ends by the signal when the record is durable", async () => {
    await using agent = startAgent("plain", { manner: "async", ids: [newId(), newId()] });
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    for (const id of agent.job.ids) {
      const records = await recordsOf(agent.job, id);
      expect(signalsOf(records)).toEqual([{ signal: "SIGTERM" }]);
      expectNothingLost(agent.process.said, id, records);
    }
  });
});

describe("R17: the host's own listeners decide", () => {
  test("a host that drains for two seconds goes on appending, and exits with its own status", async () => {
    await using agent = startAgent("drains");
    const [id] = agent.job.ids as [string];
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    await agent.process.until("draining");
    expect(await agent.process.died).toEqual({ code: 0, signal: null });
    const records = await recordsOf(agent.job, id);
    expect(signalsOf(records)).toEqual([{ signal: "SIGTERM" }]);
    expect(expectNothingLost(agent.process.said, id, records)).toBeGreaterThan(3);
    const after = records.slice(records.findIndex(({ kind }) => kind === "signal") + 1);
    expect(after.filter(({ kind }) => kind === "message").length).toBeGreaterThan(3);
  });

  test("a `once` listener counts; the second signal has its default effect, and is recorded too", async () => {
    await using agent = startAgent("once");
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    await agent.process.until("heard");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    const signals = signalsOf(await recordsOf(agent.job, agent.job.ids[0]!));
    expect(signals).toEqual([{ signal: "SIGTERM" }, { signal: "SIGTERM" }]);
  });

  test("a host that ignores the signal lives on; without its listener the next one ends it", async () => {
    await using agent = startAgent("ignores");
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    await agent.process.until("heard");
    agent.process.tell("forget your listener");
    await agent.process.until("forgot");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    const signals = signalsOf(await recordsOf(agent.job, agent.job.ids[0]!));
    expect(signals).toEqual([{ signal: "SIGTERM" }, { signal: "SIGTERM" }]);
  });

  test.each([
    ["ends the process only if it is alone, as signal-exit's does", "signalExit"],
    ["tidies up and raises the signal again", "raises"],
  ] as const)("the process ends by the signal beside a listener that %s", async (_, host) => {
    await using agent = startAgent(host);
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    expect(agent.process.said).toContainEqual({ say: "heard" });
    expect(signalsOf(await recordsOf(agent.job, agent.job.ids[0]!))).toEqual([{ signal: "SIGTERM" }]);
  });
});

describe("errors that nobody caught", () => {
  test.each([
    ["throws", "uncaughtException", "TypeError: nobody caught this"],
    ["rejects", "unhandledRejection", "RangeError: nobody awaited this"],
  ] as const)("%s: recorded; status 1 and the stack are Node's", async (host, signal, printed) => {
    await using agent = startAgent(host);
    const [id] = agent.job.ids as [string];
    await agent.process.until("ready");
    agent.process.tell("now");
    expect(await agent.process.died).toEqual({ code: 1, signal: null });
    expect(agent.process.stderr).toContain(`${printed}\n    at `);
    const records = await recordsOf(agent.job, id);
    expect(signalsOf(records)).toEqual([{ signal, error: printed.split(": ")[1] }]);
    expectNothingLost(agent.process.said, id, records);
  });

  test("a host that survives its errors goes on: the record does no harm", async () => {
    await using agent = startAgent("survives");
    const [id] = agent.job.ids as [string];
    await agent.process.until("ready");
    agent.process.tell("now");
    await agent.process.until("went on");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    const records = await recordsOf(agent.job, id);
    expect(signalsOf(records)).toEqual([
      { signal: "uncaughtException", error: "somebody caught this" },
      { signal: "SIGTERM" },
    ]);
    expectNothingLost(agent.process.said, id, records);
  });
});

test("a guard does not keep a process alive that has nothing more to do, though its stdin is open", async () => {
  await using agent = startAgent("idle");
  expect(await agent.process.died).toEqual({ code: 0, signal: null });
  expect(signalsOf(await recordsOf(agent.job, agent.job.ids[0]!))).toEqual([]);
});

describe("no listener is left behind", () => {
  const countsOf = (said: readonly { say: string }[]) =>
    said.flatMap((one) => ("counts" in one ? [one.counts as Record<string, number>] : []));

  test("after a release: a signal has its default effect, and is not recorded", async () => {
    await using agent = startAgent("released", { ids: [newId(), newId()] });
    await agent.process.until("ready");
    agent.process.kill("SIGTERM");
    expect(await agent.process.died).toEqual({ code: null, signal: "SIGTERM" });
    const [before, during, after] = countsOf(agent.process.said);
    expect(after).toEqual(before);
    const added = { SIGTERM: 1, SIGHUP: 1, uncaughtExceptionMonitor: 1 };
    expect(during).toMatchObject(added);
    expect(during).toMatchObject({ SIGINT: before!["SIGINT"], uncaughtException: 0, unhandledRejection: 0 });
    for (const id of agent.job.ids) expect(signalsOf(await recordsOf(agent.job, id))).toEqual([]);
  });

  test("after the sessions were closed", async () => {
    await using agent = startAgent("closed", { ids: [newId(), newId()] });
    expect(await agent.process.died).toEqual({ code: 0, signal: null });
    const [before, during, after] = countsOf(agent.process.said);
    expect(after).toEqual(before);
    expect(during).not.toEqual(before);
  });
});
