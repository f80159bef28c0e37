import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { cursorOf } from "holdfast/internal";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { HoldfastClient, ServerError } from "../../src/client/index.ts";

const bin = join(import.meta.dirname, "../../../cli/bundle/bin.js");
const CLIENTS = 3;
const WAIT_MS = 60_000;

export interface KillReport {
  readonly kills: number;
  /** Kills in the middle of a turn. */
  readonly inTurn: number;
  readonly records: number;
  readonly reconnects: number;
}

/**
 * A real server is killed with SIGKILL at random instants while its agent works and clients follow; then it is started
 * again, and its turn finished. Throws if an acknowledged prompt is missing, the journal is damaged, or a client does
 * not end with exactly the records of the journal.
 */
export async function killServer(rounds: number, seed: number): Promise<KillReport> {
  const random = seededRandom(seed);
  const home = mkdtempSync(join(tmpdir(), "holdfast-killed-server-"));
  const [store, work] = [join(home, "store"), join(home, "work")];
  mkdirSync(work);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    PATH: process.env["PATH"],
    HOME: home,
    XDG_STATE_HOME: join(home, "state"),
    HOLDFAST_STORE: store,
    HOLDFAST_CONFIG: "",
    HOLDFAST_OFFLINE_DELAY_MS: "2",
  };
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [bin, "serve", "--port", String(port), "--allow", "write"], {
      cwd: work,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise<void>((resolve, reject) => {
      child.stdout!.once("data", () => resolve());
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    return child;
  };
  let child = await start();
  const ending = new AbortController();
  try {
    const token = await tokenOf(env);
    const client = new HoldfastClient({ url, token });
    const { id } = await client.call("createSession", { body: { cwd: work } });
    const followers = Array.from({ length: CLIENTS }, () => new Follower(client, id, ending.signal));
    const acknowledged: string[] = [];
    let inTurn = 0;
    for (let round = 1; round <= rounds; round++) {
      const prompt = `${round}. write file-${round}.txt: hello ${round}`;
      await client.call("startTurn", { params: { id }, body: { text: prompt } });
      acknowledged.push(prompt);
      await sleep(random.below(250));
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
      child = await start();
      const { status, interruption } = await client.call("getSession", { params: { id } });
      if (status === "interrupted") {
        if (interruption === null) throw new Error("an interrupted session does not say what was interrupted");
        inTurn++;
        await client.call("finishTurn", { params: { id }, body: {} });
      }
      await until(async () => (await client.call("getSession", { params: { id } })).status === "idle");
    }
    await client.call("closeSession", { params: { id } });
    const journal = await journalOf(store, id);
    for (const prompt of acknowledged)
      if (!journal.prompts.includes(prompt)) throw new Error(`the acknowledged prompt "${prompt}" is missing`);
    for (const follower of followers) {
      await until(async () => follower.ids.length >= journal.ids.length);
      const differs = journal.ids.findIndex((one, index) => one !== follower.ids[index]);
      if (differs >= 0 || follower.ids.length !== journal.ids.length)
        throw new Error(`a client has ${follower.ids[differs]} where the journal has ${journal.ids[differs]}`);
    }
    const reconnects = followers.reduce((sum, follower) => sum + follower.connections - 1, 0);
    return { kills: rounds, inTurn, records: journal.ids.length, reconnects };
  } finally {
    ending.abort();
    child.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A client that comes back until it is told to end, and keeps the id of every record. */
class Follower {
  readonly ids: string[] = [];
  connections = 0;

  constructor(client: HoldfastClient, session: string, signal: AbortSignal) {
    void this.#follow(client, session, signal);
  }

  async #follow(client: HoldfastClient, session: string, signal: AbortSignal): Promise<void> {
    let after = "start";
    while (!signal.aborted) {
      try {
        this.connections++;
        for await (const { name, lastId } of client.events(session, { after, signal })) {
          if (name === "start-over") this.ids.length = 0;
          if (name === "record") this.ids.push(lastId.replace(/~.*/, ""));
          after = lastId || "start";
        }
      } catch (error) {
        if (!(error instanceof ServerError)) throw error;
      }
      await sleep(20);
    }
  }
}

async function journalOf(
  address: string,
  id: string,
): Promise<{ readonly ids: readonly string[]; readonly prompts: readonly string[] }> {
  await using store = await openStore(address);
  const { damaged, missing } = await store.verify(id);
  if (damaged.length > 0 || missing.length > 0) throw new Error("the journal is damaged");
  const records = await Array.fromAsync(store.history(id));
  const prompts = records.flatMap(({ kind, message }) =>
    kind === "message" && (message as { role?: unknown }).role === "user"
      ? [String((message as { content?: unknown }).content)]
      : [],
  );
  return { ids: records.map(cursorOf), prompts };
}

async function tokenOf(env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, [bin, "serve", "--show-token"], { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const piece of child.stdout!.setEncoding("utf8")) text += piece;
  return text.trim();
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + WAIT_MS;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error("waited too long");
    await sleep(20);
  }
}

/** `npm run server-kills -- [rounds] [seed]` */
if (import.meta.main) {
  const [rounds = "100", seed = String(Math.floor(Math.random() * 1e9))] = process.argv.slice(2);
  console.log(`npm run server-kills -- ${rounds} ${seed} repeats this run`);
  console.log(await killServer(Number(rounds), Number(seed)));
}
