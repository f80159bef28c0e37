import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { rolldown } from "rolldown";
import type { TestContext } from "vitest";

/** The oldest date that the package promises, so that a test notices if it needs a newer one. */
const COMPATIBLE_SINCE = "2026-05-01";
const START_MS = 60_000;

const missing = whyMissing();
export const isInstalled = missing === null;
if (missing !== null) console.log(`not run: tests in workerd (${missing})`);

export function needsWorkerd(context: TestContext): void {
  if (missing !== null) context.skip(`not run: ${missing}`);
}

/** The program comes from npm, where there are binaries for the system. */
function whyMissing(): string | null {
  try {
    const { status, stderr, error } = spawnSync(program(), ["--version"], { encoding: "utf8" });
    return status === 0 ? null : (error?.message ?? stderr);
  } catch (error) {
    return (error as Error).message;
  }
}

function program(): string {
  return (createRequire(import.meta.url)("workerd") as { readonly default: string }).default;
}

interface WorkerOptions {
  readonly date?: string;
  readonly sql?: boolean;
  readonly conditions?: readonly string[];
}

/** A Worker of this folder on loopback, with the databases of its objects in a folder that outlives the process. */
export class TestWorker {
  readonly #folder: string;
  #process: ChildProcess | null = null;
  #stderr = "";
  #url = "";

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * `date`: its compatibility date. `sql: false`: its objects have no SQLite database. `conditions`: of the entries
   * that it imports; by default, the sources of this repository.
   */
  static async create(source: string, options: WorkerOptions = {}): Promise<TestWorker> {
    const { date = COMPATIBLE_SINCE, sql = true, conditions = ["holdfast-source"] } = options;
    // Where syncing costs nothing: a killed process loses nothing there either.
    const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "holdfast-workerd-"));
    await bundle(join(import.meta.dirname, source), join(folder, "worker.js"), conditions);
    writeFileSync(join(folder, "config.capnp"), configOf(folder, date, sql));
    return new TestWorker(folder);
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Starts it, also again after `kill`. */
  async start(): Promise<void> {
    const child = spawn(program(), ["serve", "--control-fd=3", join(this.#folder, "config.capnp")], {
      stdio: ["ignore", "inherit", "pipe", "pipe"],
    });
    this.#process = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    const control = createInterface(child.stdio[3] as Readable);
    const port = await new Promise<number>((resolve, reject) => {
      const give = (why: string): void => reject(new Error(`workerd ${why}: ${this.#stderr}`));
      const timer = setTimeout(give, START_MS, "did not start");
      child.once("error", reject).once("exit", () => give("ended"));
      control.once("line", (line) => resolve((JSON.parse(line) as { readonly port: number }).port));
      control.once("line", () => clearTimeout(timer));
    });
    this.#url = `http://127.0.0.1:${port}`;
  }

  /** With SIGKILL, as when the machine fails. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await ended;
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`${this.#url}${path}`, init);
  }

  async text(path: string): Promise<string> {
    return (await this.fetch(path)).text();
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** As the bundlers of Workers do it: in one file, with the modules of the runtime outside. */
async function bundle(input: string, file: string, conditions: readonly string[]): Promise<void> {
  const build = await rolldown({
    input,
    platform: "neutral",
    external: [/^node:/, /^cloudflare:/],
    resolve: { conditionNames: [...conditions, "workerd", "worker", "browser", "import", "default"] },
    checks: { ineffectiveDynamicImport: false },
  });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
}

function configOf(folder: string, date: string, sql: boolean): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (path = ${JSON.stringify(folder)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "${date}",
  compatibilityFlags = ["nodejs_compat"],
  bindings = [(name = "OBJECTS", durableObjectNamespace = "TestObject")],
  durableObjectNamespaces = [(className = "TestObject", uniqueKey = "holdfast", enableSql = ${sql})],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}
