import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describeConformance, type Place, type Step, type SubjectOptions } from "@holdfast/testkit";
import type { JournalStore } from "holdfast/store";
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

/** A schema of its own. */
class SchemaPlace implements Place {
  readonly #schema = `place_${process.pid}_${++places}`;

  get #url(): string {
    return `${server.url}?schema=${this.#schema}`;
  }

  open(options: SubjectOptions = {}): Promise<JournalStore> {
    return openPostgresStore(this.#url, { connections: 2, monthsAhead: 0, ...options });
  }

  writeAndDie(id: string, steps: readonly Step[]): Promise<void> {
    const args = ["--conditions=holdfast-source", WRITER, this.#url, id, JSON.stringify(steps)];
    return new Promise((resolve, reject) => {
      execFile(process.execPath, args, (error, _, stderr) => {
        if (error?.signal === "SIGKILL") resolve();
        else reject(new Error(`the writer was not killed but ended by itself: ${error?.message ?? ""} ${stderr}`));
      });
    });
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
