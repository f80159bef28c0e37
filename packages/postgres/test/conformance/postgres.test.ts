import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeConformance, type Place, type Step, type SubjectOptions } from "@holdfast/testkit";
import type { JournalStore } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, test } from "vitest";
import { openPostgresStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

const WRITER = fileURLToPath(new URL("writer-that-dies.ts", import.meta.url));

let server: Server;
let places = 0;

beforeAll(async () => {
  // Nothing here cuts the power: what the machine loses is tried elsewhere.
  server = await startServer(["fsync=off", "full_page_writes=off"]);
});
afterAll(() => server.stop());

/** A server on a busy machine takes a moment to notice that a client is gone. */
async function connectionsEnd(app: string): Promise<void> {
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    const ask = () => client.query("SELECT 1 FROM pg_stat_activity WHERE application_name = $1", [app]);
    while ((await ask()).rowCount !== 0) await sleep(10);
  } finally {
    await client.end();
  }
}

/** A schema of its own. */
class SchemaPlace implements Place {
  readonly #schema = `place_${process.pid}_${++places}`;

  get #url(): string {
    return `${server.url}?schema=${this.#schema}`;
  }

  open(options: SubjectOptions = {}): Promise<JournalStore> {
    return openPostgresStore(this.#url, { connections: 2, monthsAhead: 0, ...options });
  }

  async writeAndDie(id: string, steps: readonly Step[]): Promise<void> {
    const app = `dies_${id}`;
    const args = ["--conditions=holdfast-source", WRITER, this.#url, id, JSON.stringify(steps), app];
    await new Promise<void>((resolve, reject) => {
      execFile(process.execPath, args, (error, _, stderr) => {
        if (error?.signal === "SIGKILL") resolve();
        else reject(new Error(`the writer was not killed but ended by itself: ${error?.message ?? ""} ${stderr}`));
      });
    });
    await connectionsEnd(app);
  }

  /** It goes with the server. */
  async remove(): Promise<void> {}
}

describeConformance(
  {
    name: "postgres",
    capabilities: { durability: "power", lease: "fenced", sync: false, shared: true, pack: false, dies: true },
    fresh: async () => new SchemaPlace(),
  },
  { describe, test },
);
