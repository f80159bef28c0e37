import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { freePort } from "./server.ts";

/** By this name the primary knows its standby. */
export const STANDBY_NAME = "standby";

/** What a standby needs to know of the server that it copies. */
export interface Primary {
  readonly url: string;
  readonly port: number;
  /** The server's data is in its folder `data`. */
  readonly folder: string;
}

/** Copies a running server, and follows it as a streaming standby until it is promoted. */
export class Standby implements Primary {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly #process: ChildProcess;
  #log = "";

  private constructor(primary: Primary, port: number, folder: string, running: ChildProcess) {
    this.url = urlOn(primary, port);
    this.port = port;
    this.folder = folder;
    this.#process = running;
    running.stderr!.on("data", (chunk: Buffer) => {
      this.#log = `${this.#log}${chunk}`.slice(-2000);
    });
  }

  /** `settings` are those of the primary. */
  static async of(primary: Primary, settings: readonly string[]): Promise<Standby> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-standby-"));
    await chmod(folder, 0o777);
    const data = join(folder, "data");
    const binaries = await copy(primary, data);
    const port = await freePort();
    const conninfo = `host=127.0.0.1 port=${primary.port} user=postgres password=secret application_name=${STANDBY_NAME}`;
    // In place of the primary's own changes, which it would take over.
    await writeFile(join(data, "postgresql.auto.conf"), `primary_conninfo = '${conninfo}'\n`);
    await writeFile(join(data, "standby.signal"), "");
    const { uid, gid } = await stat(join(primary.folder, "data"));
    // The server opens these for writing.
    for (const name of ["backup_label", "postgresql.auto.conf", "standby.signal"])
      await chown(join(data, name), uid, gid);
    const flags = ["listen_addresses=127.0.0.1", "unix_socket_directories=", ...settings].flatMap((one) => ["-c", one]);
    const running = spawn(join(binaries, "postgres"), ["-D", data, "-p", String(port), ...flags], {
      stdio: ["ignore", "ignore", "pipe"],
      ...(process.getuid?.() === 0 ? { uid, gid } : {}),
    });
    const standby = new Standby(primary, port, folder, running);
    await standby.query("SELECT 1");
    return standby;
  }

  /** Waits for a server that is just starting. */
  async query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    for (;;) {
      try {
        return await queryOnce(this.url, text, values);
      } catch (error) {
        if (this.#process.exitCode !== null) throw new Error(`the standby has ended: ${this.#log}`, { cause: error });
        if (!/ECONN|57P03/.test(`${(error as { code?: string }).code}`)) throw error;
      }
      await sleep(50);
    }
  }

  async promote(): Promise<void> {
    await this.query("SELECT pg_promote()");
  }

  /** As if its machine were gone. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGQUIT");
    await rm(this.folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, "close");
    this.#process.kill(signal);
    await ended;
  }
}

/** From now on commits of this server wait for a synchronous standby of this name, also while there is none. */
export async function requireStandby(url: string, name: string): Promise<void> {
  const ask = (text: string, values: unknown[] = []) => queryOnce(url, text, values);
  await ask(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
  await ask("SELECT pg_reload_conf()");
  // The server's processes learn it one by one: until a commit is seen to wait.
  const probe = new pg.Client({ connectionString: url, application_name: "probe" });
  probe.on("error", () => undefined);
  await probe.connect();
  try {
    const waits =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'probe' AND wait_event = 'SyncRep'";
    for (let isOver = false; !isOver; ) {
      const committed = probe.query("SELECT pg_logical_emit_message(true, 'probe', '')").then(
        () => true,
        () => false,
      );
      const isDone = await Promise.race([committed, sleep(100, false)]);
      isOver = !isDone && (await ask(waits)).length === 1;
      if (!isOver) await committed;
    }
  } finally {
    await probe.end().catch(() => undefined);
  }
}

/** A copy of the data of a running server. Returns where its programs are. */
async function copy(primary: Primary, data: string): Promise<string> {
  const client = new pg.Client({ connectionString: primary.url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query(
      "SELECT current_setting('server_version_num')::int AS version, setting FROM pg_config WHERE name = 'BINDIR'",
    );
    const { version, setting } = rows[0] as { version: number; setting: string };
    const [start, stop] =
      version < 150_000
        ? ["pg_start_backup('drill', true, false)", "pg_stop_backup(false, false)"]
        : ["pg_backup_start('drill', true)", "pg_backup_stop(false)"];
    await client.query(`SELECT ${start}`);
    // Files come and go meanwhile: `cp` complains of some, and what it missed is in the log that the standby reads.
    await new Promise<void>((resolve) => {
      execFile("cp", ["-a", join(primary.folder, "data"), data], () => resolve());
    });
    const stopped = await client.query(`SELECT labelfile FROM ${stop}`);
    for (const gone of ["postmaster.pid", "postmaster.opts", "standby.signal"])
      await rm(join(data, gone), { force: true });
    await writeFile(join(data, "backup_label"), stopped.rows[0].labelfile as string);
    return setting;
  } finally {
    await client.end();
  }
}

async function queryOnce(url: string, text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(text, values)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function urlOn(primary: Primary, port: number): string {
  const url = new URL(primary.url);
  url.port = String(port);
  return url.href;
}
