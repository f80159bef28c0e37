import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { validateAnthropic } from "@holdfast/testkit";
import { idFrom, type JournalRecord, type Store } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { openStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

/** examples/functions.ts on a platform that ends invocations with SIGKILL, or lets them come to their limit. */

const EXAMPLE = fileURLToPath(new URL("../../../../examples/functions.ts", import.meta.url));
const PRELOAD = pathToFileURL(`${import.meta.dirname}/hold-functions.ts`).href;
const seed = seedOf(import.meta.url, "kill");
/** On a busy machine, too, an answer of the model fits into what is left of it for work. */
const LIMIT_MS = 6000;
/** So many invocations finish a turn. */
const INVOCATIONS_MAX = 40;

/** Invocations, and what is around them: a queue, a mail server, and who holds them at a place. */
class Platform {
  readonly mails: string[] = [];
  readonly woken: string[] = [];
  readonly #databaseUrl: string;
  readonly #running = new Set<ChildProcess>();
  /** The places where the next invocation is held, in this order, each once. */
  #places: readonly string[] = [];
  #held = Promise.withResolvers<void>();
  readonly #around = createServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString();
    if (request.url === "/hold") return this.#hold(body, response);
    (request.url === "/mail" ? this.mails : this.woken).push(body);
    return response.end();
  });

  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
  }

  async start(): Promise<void> {
    await once(this.#around.listen(0, "127.0.0.1"), "listening");
  }

  /** Resolves when an invocation is held at the last of them. */
  holdAt(places: readonly string[]): Promise<void> {
    this.#places = places;
    this.#held = Promise.withResolvers();
    return this.#held.promise;
  }

  /** Whether no invocation came to all places. */
  get isHolding(): boolean {
    return this.#places.length > 0;
  }

  #hold(place: string, response: ServerResponse): void {
    if (place !== this.#places[0]) {
      response.end();
      return;
    }
    this.#places = this.#places.slice(1);
    if (this.#places.length === 0) this.#held.resolve();
  }

  /** One invocation in a process of its own, killed at that instant. Null: it had not answered. */
  async invoke(path: string, body: object | null, instant: () => Promise<void>): Promise<Response | null> {
    const { port } = this.#around.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    const child = spawn(process.execPath, ["--conditions=holdfast-source", "--import", PRELOAD, EXAMPLE], {
      env: {
        ...process.env,
        DATABASE_URL: this.#databaseUrl,
        ...{ WAKE_URL: `${url}/work`, MAIL_URL: `${url}/mail`, HOLD_URL: `${url}/hold` },
        ...{ PORT: "0", LIMIT_MS: String(LIMIT_MS) },
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#running.add(child);
    const exit = once(child, "exit");
    const [own] = (await once(createInterface(child.stdout!), "line")) as [string];
    void instant().then(() => child.kill("SIGKILL"));
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${own}${path}`, init).catch(() => null);
    child.kill("SIGKILL");
    await exit;
    this.#running.delete(child);
    if (response) expect(response.ok, `${path} answers ${response.status}`).toBe(true);
    return response;
  }

  end(): void {
    for (const child of this.#running) child.kill("SIGKILL");
    this.#around.closeAllConnections();
    this.#around.close();
  }
}

const never = (): Promise<void> => new Promise(() => {});

let server: Server;
let store: Store;
let platform: Platform;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
  await server.query("CREATE TABLE summaries (call text)");
  store = await openStore(server.url, { monthsAhead: 0 });
  platform = new Platform(server.url);
  await platform.start();
}, 120_000);

afterAll(async () => {
  platform?.end();
  await store?.close();
  await server?.stop();
}, 120_000);

async function summaries(): Promise<number> {
  return (await server.query("SELECT call FROM summaries")).length;
}

/** A dead function's session is free when the server has seen its connection end, and its try is repeated then. */
async function untilDue(): Promise<void> {
  const due = await store.nextDue({ app: "functions" });
  if (due) await sleep(Math.max(0, due.getTime() - Date.now()));
}

/** Invocations that nobody ends, until the turn is over. */
async function finish(id: string, what: string): Promise<void> {
  for (let n = 1; (await store.read(id)).state !== "idle"; n++) {
    expect(n, `${what}: it comes to its end`).toBeLessThan(INVOCATIONS_MAX);
    await untilDue();
    await platform.invoke("/work", null, never);
  }
}

/** The turn was finished once. Returns whether nobody knows if the mail was sent. */
async function expectFinished(id: string, what: string): Promise<{ isUnknown: boolean }> {
  const { messages, entries } = await store.read<{ role: "user" | "assistant"; content: never }>(id);
  expect(validateAnthropic({ messages: [...messages, { role: "user", content: "And now?" }] }), what).toEqual([]);
  const records = await Array.fromAsync(store.history(id));
  expect(
    records.filter(({ kind }) => kind === "turn.ended"),
    what,
  ).toMatchObject([{ outcome: "completed" }]);
  // The mail was sent at most once, and if nobody knows, the model was told.
  const isMail = ({ name }: JournalRecord): boolean => name === "send_mail";
  const started = records.filter((record) => record.kind === "tool.started" && isMail(record)).length;
  expect(started, what).toBeLessThanOrEqual(1);
  const isKnown = records.some((record) => record.kind === "tool.ended" && isMail(record));
  const isUnknown = entries.some(({ synthetic }) => synthetic === "outcome-unknown");
  expect(started === 0 || isKnown !== isUnknown, what).toBe(true);
  return { isUnknown };
}

/** Starts a turn, and holds an invocation at the last of these places. What it answered: null if it was killed. */
async function held(chat: string, places: readonly string[], isKilled: boolean): Promise<Response | null> {
  const prompt = { text: "Tell everybody about the release.", key: chat };
  await platform.invoke(`/chats/${chat}`, prompt, never);
  for (let n = 1; n < INVOCATIONS_MAX; n++) {
    const reached = platform.holdAt(places);
    await untilDue();
    const response = await platform.invoke("/work", null, () => (isKilled ? reached : never()));
    // On a very busy machine, its time may be over before it comes there.
    if (!platform.isHolding) return response;
  }
  throw new Error(`no invocation came to ${places.join(", ")}`);
}

describe("a function that is ended", () => {
  test.each([
    ["before the request", [], false],
    ["while it streams", [], false],
    ["between tools", [], false],
    ["in a tool", [], true],
    // At its limit, while it waits for the tool.
    ["at the hand-over", ["in a tool"], true],
    // The turn is handed over, and the queue was not told.
    ["after the hand-over", ["between tools"], false],
  ] as const)(
    "%s: the next one finishes the turn",
    async (what, first, isUnknown) => {
      const chat = `killed-${what.replaceAll(" ", "-")}`;
      const id = idFrom(`chat ${chat}`);
      const before = { mails: platform.mails.length, summaries: await summaries() };
      expect(await held(chat, [...first, what], true), what).toBeNull();
      const { state, interruption } = await store.read(id);
      expect(state, what).not.toBe("idle");
      if (what === "after the hand-over") expect(interruption?.how, what).toEqual({ kind: "handed-over" });
      await finish(id, what);
      expect(await expectFinished(id, what), what).toEqual({ isUnknown });
      expect(platform.mails.length - before.mails, what).toBe(1);
      expect((await summaries()) - before.summaries, what).toBe(1);
    },
    240_000,
  );
});

describe("a function that comes to its limit", () => {
  test.each([["before the request"], ["while it streams"], ["between tools"], ["in a tool"]])(
    "%s: it hands the turn over by itself, and has the next one called",
    async (place) => {
      const chat = `limit-${place.replaceAll(" ", "-")}`;
      const id = idFrom(`chat ${chat}`);
      const before = { mails: platform.mails.length, summaries: await summaries() };
      const response = await held(chat, [place], false);
      const { due } = (await response!.json()) as { readonly due: string };
      expect((await store.read(id)).interruption?.how, place).toEqual({ kind: "handed-over" });
      expect(platform.woken, place).toContain(new Date(due).toISOString());
      await finish(id, place);
      const { isUnknown } = await expectFinished(id, place);
      // Only the tool may have taken longer than it was given.
      if (place !== "in a tool") expect(isUnknown, place).toBe(false);
      const { entries } = await store.read(id);
      // Nobody is told of what only the limit has cut off.
      if (place === "before the request" || place === "between tools")
        expect(
          entries.filter(({ synthetic }) => synthetic !== undefined),
          place,
        ).toEqual([]);
      expect(platform.mails.length - before.mails, place).toBe(1);
      expect((await summaries()) - before.summaries, place).toBe(1);
    },
    240_000,
  );
});

test("functions that are ended at random instants of a turn finish it once, and run nothing unsafe twice", async () => {
  const random = seededRandom(seed);
  const before = { mails: platform.mails.length, woken: platform.woken.length, summaries: await summaries() };
  let killed = 0;
  const invocations: number[] = [];
  for (let turn = 1; turn <= 2; turn++) {
    const what = `seed ${seed}, turn ${turn}`;
    const path = `/chats/${turn}`;
    const prompt = { text: "Tell everybody about the release.", key: `p${turn}` };
    // The first request of each prompt is ended somewhere, and the client repeats it.
    // On a busy machine, an answer takes longer.
    const within = (tries: number) => () => sleep(random.below(400 * tries));
    for (let tries = 1; !(await platform.invoke(path, prompt, within(tries))); tries++) killed++;
    expect(platform.woken.length, what).toBeGreaterThan(before.woken);
    const id = idFrom(`chat ${turn}`);
    for (let n = 1; ; n++) {
      if ((await store.read(id)).state === "idle") {
        invocations.push(n - 1);
        break;
      }
      expect(n, `${what}: it comes to its end`).toBeLessThan(INVOCATIONS_MAX);
      // A platform may do that at any time, also earlier than it had said.
      const limitMs = n % 3 === 0 ? LIMIT_MS : 30 + random.below(1500);
      if (!(await platform.invoke("/work", null, () => sleep(limitMs)))) killed++;
      await untilDue();
    }
    await expectFinished(id, what);
    expect((await summaries()) - before.summaries, what).toBe(turn);
  }
  expect(platform.mails.length - before.mails).toBeLessThanOrEqual(2);
  expect(killed).toBeGreaterThan(2);
  console.log(`seed ${seed}: ${killed} invocations were ended; per turn ${invocations}`);
}, 240_000);
