import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { guard } from "../../../src/guard/guard.ts";
import { type Ending, endsNow, type Guarded, onClosed } from "../../../src/session/guarded.ts";
import type { Session } from "../../../src/session/surface.ts";
import { place } from "../../place.ts";

/** Remembers what it was told. What real processes do about it is in test/kill/guard.test.ts. */
class Fake implements Guarded {
  readonly told: Ending[] = [];
  readonly #answer: () => void | Promise<void>;
  readonly #listeners = new Set<() => void>();

  constructor(answer: () => void | Promise<void> = () => {}) {
    this.#answer = answer;
  }
  [endsNow](ending: Ending): void | Promise<void> {
    this.told.push(ending);
    return this.#answer();
  }
  [onClosed](listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  get watched(): number {
    return this.#listeners.size;
  }
  close(): void {
    for (const listener of [...this.#listeners]) listener();
  }
  get session(): Session<unknown> {
    return this as unknown as Session<unknown>;
  }
}

const watched = ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR2", "uncaughtExceptionMonitor"];
const counts = () => watched.map((event) => process.listenerCount(event));
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

/** `process.kill` is not called for real: what is raised is noted, and with which listeners still in place. */
let raised: { signal: unknown; listeners: number }[];
let before: number[];
beforeEach(() => {
  before = counts();
  raised = [];
  vi.spyOn(process, "kill").mockImplementation((_pid, signal) => {
    raised.push({ signal, listeners: process.listenerCount(String(signal)) });
    return true;
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  expect(counts(), "a test left a listener behind").toEqual(before);
});

/** SIGUSR2: nobody else in this process listens to it. */
const alone = { signals: ["SIGUSR2"] } as const;
const emit = (signal: NodeJS.Signals) => process.emit(signal, signal);
const emitUncaught = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) =>
  (process as NodeJS.EventEmitter).emit("uncaughtExceptionMonitor", error, origin);

describe("what is asked of it", () => {
  test.each([{}, null, undefined, "session", { [endsNow]: () => {} }])(
    "%j is no target: TypeError, nothing guarded",
    (target) => {
      expect(() => guard(target as never)).toThrow(TypeError);
      expect(() => guard(target as never)).toThrow("guard needs a session or a store");
      expect(counts()).toEqual(before);
    },
  );

  test.each(["SIGKILL", "SIGSTOP"] as const)("%s cannot be listened to: TypeError, nothing guarded", (signal) => {
    const fake = new Fake();
    expect(() => guard(fake.session, { signals: ["SIGTERM", signal] })).toThrow(`listen to ${signal}`);
    expect(counts()).toEqual(before);
    expect(fake.watched).toBe(0);
  });

  test("SIGTERM and SIGHUP by default, and SIGINT only if it is named", () => {
    const byDefault = guard(new Fake().session);
    const [term, hup, int] = counts();
    byDefault();
    const named = guard(new Fake().session, { signals: ["SIGINT", "SIGINT"] });
    const withInt = counts()[2];
    named();
    const windows = process.platform === "win32";
    expect([term, hup, int, withInt]).toEqual([
      before[0]! + (windows ? 0 : 1),
      before[1]! + 1,
      before[2],
      before[2]! + 1,
    ]);
  });
});

describe("the end of a guard", () => {
  test("called, called twice, disposed, or its target closed: nothing is left", () => {
    const fake = new Fake();
    const release = guard(fake.session);
    release();
    release();
    expect(counts()).toEqual(before);
    {
      using _ = guard(fake.session);
      expect(counts()).not.toEqual(before);
    }
    expect(counts()).toEqual(before);
    guard(fake.session);
    guard(fake.session, alone);
    fake.close();
    expect(counts()).toEqual(before);
    expect(fake.watched).toBe(0);
  });

  test("a target that is closed already is not guarded", () => {
    const fake = new Fake();
    const closed = Object.assign(fake, {
      [onClosed]: (listener: () => void) => {
        listener();
        return () => {};
      },
    });
    guard(closed.session);
    expect(counts()).toEqual(before);
  });

  test("two guards of one target: told once, and until both are released", async () => {
    const fake = new Fake();
    const first = guard(fake.session, alone);
    const second = guard(fake.session, alone);
    emit("SIGUSR2");
    expect(fake.told).toEqual([{ signal: "SIGUSR2" }]);
    first();
    first();
    await tick();
    emit("SIGUSR2");
    expect(fake.told).toHaveLength(2);
    second();
    await tick();
    emit("SIGUSR2");
    expect(fake.told).toHaveLength(2);
  });

  test("the release of one guard leaves the others as they are", async () => {
    const [first, second] = [new Fake(), new Fake()];
    const releases = [first, second].map((fake) => guard(fake.session, alone));
    releases[0]!();
    emitUncaught(new Error("words"), "uncaughtException");
    emit("SIGUSR2");
    expect(first.told).toEqual([]);
    expect(second.told).toEqual([{ signal: "uncaughtException", error: "words" }, { signal: "SIGUSR2" }]);
    releases[1]!();
    await tick();
  });

  test("released by a listener in front of it: not told, and the host's listener has the signal", () => {
    const fake = new Fake();
    const release = guard(fake.session, alone);
    process.prependListener("SIGUSR2", release);
    emit("SIGUSR2");
    process.off("SIGUSR2", release);
    expect(fake.told).toEqual([]);
    expect(raised).toEqual([]);
  });
});

describe("a signal", () => {
  test("that nobody else listens to is raised again, without a listener; and the guard is there again if the process lives on", async () => {
    const fake = new Fake();
    using _ = guard(fake.session, alone);
    emit("SIGUSR2");
    expect(raised).toEqual([{ signal: "SIGUSR2", listeners: 0 }]);
    await tick();
    emit("SIGUSR2");
    expect(fake.told).toHaveLength(2);
    expect(raised).toHaveLength(2);
    await tick();
  });

  test("that cannot be raised (Windows) ends the process with the status that stands for it", async () => {
    vi.mocked(process.kill).mockImplementation(() => {
      throw new Error("kill ENOSYS");
    });
    const exit = vi.spyOn(process, "exit").mockImplementation((() => {}) as never);
    using _ = guard(new Fake().session, { signals: ["SIGHUP"] });
    emit("SIGHUP");
    expect(exit.mock.calls).toEqual([[129]]);
    await tick();
  });

  test("is recorded before the host's listeners run, and these do not find the guard's in the list", async () => {
    const fake = new Fake();
    const seen: unknown[] = [];
    const host = () => seen.push([fake.told.length, process.listeners("SIGUSR2")]);
    process.on("SIGUSR2", host);
    const release = guard(fake.session, alone);
    emit("SIGUSR2");
    await tick();
    emit("SIGUSR2");
    await tick();
    expect(process.listenerCount("SIGUSR2")).toBe(2);
    process.off("SIGUSR2", host);
    release();
    expect(seen).toEqual([
      [1, [host]],
      [2, [host]],
    ]);
    expect(raised).toEqual([]);
  });

  test("released by the host's listener: the guard does not come back", async () => {
    const release = guard(new Fake().session, alone);
    process.once("SIGUSR2", release);
    emit("SIGUSR2");
    await tick();
    expect(process.listenerCount("SIGUSR2")).toBe(0);
  });

  test("goes to every target as the same object, so that a session that is told twice can know it", async () => {
    const [first, fails, last] = [
      new Fake(),
      new Fake(() => {
        throw new Error("broken");
      }),
      new Fake(),
    ];
    const releases = [first, fails, last].map((fake) => guard(fake.session, alone));
    emit("SIGUSR2");
    expect(last.told[0]).toBe(first.told[0]);
    expect(fails.told).toHaveLength(1);
    expect(raised).toHaveLength(1);
    for (const release of releases) release();
    await tick();
  });
});

describe("a store without a synchronous way", () => {
  const slow = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    return { fake: new Fake(() => promise), resolve };
  };

  test("is waited for; a second signal meanwhile is not recorded again", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const [one, other] = [slow(), slow()];
    const releases = [one, other].map(({ fake }) => guard(fake.session, alone));
    emit("SIGUSR2");
    emit("SIGUSR2");
    one.resolve();
    await tick();
    expect(raised).toEqual([]);
    other.resolve();
    await tick();
    expect(raised).toEqual([{ signal: "SIGUSR2", listeners: 0 }]);
    expect([one.fake.told.length, other.fake.told.length]).toEqual([1, 1]);
    expect(vi.getTimerCount()).toBe(0);
    for (const release of releases) release();
  });

  test("a host that ends the process by itself can wait for the record, five seconds at most", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { fake, resolve } = slow();
    const release = guard(fake.session, alone);
    await release.written();
    process.once("SIGUSR2", () => undefined);
    emit("SIGUSR2");
    let isWritten = false;
    const waiting = release.written().then(() => {
      isWritten = true;
    });
    await tick();
    expect([isWritten, raised]).toEqual([false, []]);
    resolve();
    await waiting;
    expect(vi.getTimerCount()).toBe(0);
    release();
    await tick();
  });

  test("that never answers is waited for five seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    using _ = guard(slow().fake.session, alone);
    emit("SIGUSR2");
    await vi.advanceTimersByTimeAsync(4_999);
    expect(raised).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(raised).toHaveLength(1);
    await tick();
  });

  test("the signal is owed to the process also if the session is closed meanwhile", async () => {
    const { fake, resolve } = slow();
    guard(fake.session, alone);
    emit("SIGUSR2");
    fake.close();
    resolve();
    await tick();
    expect(raised).toEqual([{ signal: "SIGUSR2", listeners: 0 }]);
  });
});

describe("an error that nobody caught", () => {
  const hostile = new Proxy(new Error("x"), {
    get() {
      throw new Error("do not touch");
    },
    getPrototypeOf() {
      throw new Error("do not touch");
    },
  });
  test.each<[unknown, string | RegExp]>([
    [new Error("words"), "words"],
    [new TypeError(), "TypeError"],
    ["a string", "a string"],
    [{ code: 1 }, "{ code: 1 }"],
    [undefined, "undefined"],
    [Symbol("s"), "Symbol(s)"],
    [Object.create(null), /Object: null prototype/],
    [hostile, "a value that cannot be printed"],
  ])("case %#: is recorded in words, whatever was thrown", (thrown, words) => {
    const fake = new Fake();
    using _ = guard(fake.session);
    emitUncaught(thrown, "uncaughtException");
    emitUncaught(thrown, "unhandledRejection");
    const error = words instanceof RegExp ? expect.stringMatching(words) : words;
    expect(fake.told).toEqual([
      { signal: "uncaughtException", error },
      { signal: "unhandledRejection", error },
    ]);
  });

  test("a message of megabytes is cut, and not inside a character", () => {
    const fake = new Fake();
    using _ = guard(fake.session);
    emitUncaught(new Error(`x${"😀".repeat(1_000_000)}`), "uncaughtException");
    expect(fake.told[0]!.error).toHaveLength(2_000);
    expect(fake.told[0]!.error!.isWellFormed()).toBe(true);
  });
});

test("two copies of the library in one process: both record, and the process still ends by the signal", async () => {
  using folder = place();
  const source = fileURLToPath(new URL("../../../src/", import.meta.url));
  for (const part of ["guard", "session/guarded.ts"])
    cpSync(join(source, part), join(folder.path, part), { recursive: true });
  writeFileSync(join(folder.path, "package.json"), '{"type":"module"}');
  const load = (path: string) => import(/* @vite-ignore */ pathToFileURL(join(folder.path, path)).href);
  const copy = { ...(await load("guard/guard.ts")), ...(await load("session/guarded.ts")) };
  const told: Ending[] = [];
  const theirs = {
    [copy.endsNow]: (ending: Ending) => told.push(ending) && undefined,
    [copy.onClosed]: () => () => {},
  };
  const fake = new Fake();
  const releases = [guard(fake.session, alone), copy.guard(theirs, alone)];
  expect(process.listenerCount("SIGUSR2")).toBe(2);
  emit("SIGUSR2");
  expect([fake.told, told]).toEqual([[{ signal: "SIGUSR2" }], [{ signal: "SIGUSR2" }]]);
  expect(raised).toEqual([{ signal: "SIGUSR2", listeners: 0 }]);
  await tick();
  for (const release of releases) release();
});
