import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { validateAnthropic } from "@holdfast/testkit";
import { idFrom } from "holdfast";
import { expect, onTestFinished, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { openStore } from "../../src/index.ts";
import { startServer } from "../server/server.ts";

/** examples/functions.ts on a platform that ends each invocation at its limit, with SIGKILL. */

const EXAMPLE = fileURLToPath(new URL("../../../../examples/functions.ts", import.meta.url));
const seed = seedOf(import.meta.url, "kill");
/** On a busy machine, too, an answer of the model fits into what is left of it for work. */
const LIMIT_MS = 6000;

class Platform {
  readonly #env: NodeJS.ProcessEnv;
  readonly #running = new Set<ChildProcess>();

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  /** One invocation in a process of its own. Null: it was ended before it had answered. */
  async invoke(path: string, body: object | null, limitMs: number): Promise<Response | null> {
    const child = spawn(process.execPath, ["--conditions=holdfast-source", EXAMPLE], {
      env: { ...process.env, ...this.#env, PORT: "0", LIMIT_MS: String(LIMIT_MS) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#running.add(child);
    const exit = once(child, "exit");
    const [url] = (await once(createInterface(child.stdout!), "line")) as [string];
    const ended = sleep(limitMs).then(() => void child.kill("SIGKILL"));
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, init).catch(() => null);
    if (response) child.kill("SIGKILL");
    else await ended;
    await exit;
    this.#running.delete(child);
    return response;
  }

  end(): void {
    for (const child of this.#running) child.kill("SIGKILL");
  }
}

test("functions that are ended at random instants of a turn finish it once, and run nothing unsafe twice", async () => {
  const server = await startServer(["fsync=off"]);
  onTestFinished(() => server.stop());
  await server.query("CREATE TABLE summaries (call text)");
  const mails: string[] = [];
  const woken: string[] = [];
  const around = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    (request.url === "/mail" ? mails : woken).push(Buffer.concat(chunks).toString());
    response.end();
  }).listen(0, "127.0.0.1");
  await once(around, "listening");
  onTestFinished(() => void around.close());
  const { port } = around.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const platform = new Platform({ DATABASE_URL: server.url, WAKE_URL: `${url}/work`, MAIL_URL: `${url}/mail` });
  onTestFinished(() => platform.end());
  const store = await openStore(server.url, { monthsAhead: 0 });
  onTestFinished(() => store.close());
  const random = seededRandom(seed);
  let killed = 0;
  let handedOver = 0;
  const invocations: number[] = [];

  for (let turn = 1; turn <= 2; turn++) {
    const what = `seed ${seed}, turn ${turn}`;
    const path = `/chats/${turn}`;
    const prompt = { text: "Tell everybody about the release.", key: `p${turn}` };
    // The first request of each prompt is ended somewhere, and the client repeats it.
    // On a busy machine, an answer takes longer.
    for (let tries = 1; !(await platform.invoke(path, prompt, random.below(400 * tries))); tries++) killed++;
    expect(woken.length, what).toBeGreaterThan(0);
    const id = idFrom(`chat ${turn}`);
    for (let n = 1; ; n++) {
      const { state } = await store.read(id);
      if (state === "idle") {
        invocations.push(n - 1);
        break;
      }
      expect(n, `${what}: it comes to its end`).toBeLessThan(40);
      // Some are ended earlier than they were told: a platform may do that at any time.
      const limitMs = n % 3 === 0 ? LIMIT_MS : 30 + random.below(1500);
      const response = await platform.invoke("/work", null, limitMs);
      if (!response) killed++;
      else if ((await store.read(id)).interruption?.how.kind === "handed-over") handedOver++;
      // A dead function's session is free when the server has seen its connection end, and its try is repeated then.
      const due = await store.nextDue({ app: "functions" });
      if (due) await sleep(Math.max(0, due.getTime() - Date.now()));
    }
    const { messages, entries } = await store.read<{ role: "user" | "assistant"; content: never }>(id);
    expect(validateAnthropic({ messages: [...messages, { role: "user", content: "And now?" }] }), what).toEqual([]);
    const records = await Array.fromAsync(store.history(id));
    expect(
      records.filter(({ kind }) => kind === "turn.ended"),
      what,
    ).toMatchObject([{ outcome: "completed" }]);
    // The mail was sent at most once, and if nobody knows, the model was told.
    const mine = records.flatMap(({ kind, name, call }) =>
      kind === "tool.started" && name === "send_mail" ? [call] : [],
    );
    expect(mine.length, what).toBeLessThanOrEqual(1);
    const isUnknown = entries.some(({ synthetic }) => synthetic === "outcome-unknown");
    const known = records.some(({ kind, name }) => kind === "tool.ended" && name === "send_mail");
    expect(mine.length === 0 || known || isUnknown, what).toBe(true);
    const rows = await server.query("SELECT call FROM summaries");
    expect(rows, what).toHaveLength(turn);
  }
  expect(mails.length).toBeLessThanOrEqual(2);
  expect(killed).toBeGreaterThan(2);
  console.log(`seed ${seed}: ${killed} invocations were ended, ${handedOver} handed over; per turn ${invocations}`);
}, 240_000);
