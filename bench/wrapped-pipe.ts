import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { commandFolder } from "../scripts/bundle.ts";

const AGENT = join(import.meta.dirname, "../packages/cli/test/agents/flood-agent.ts");
const TICKS_PER_SECOND = 100;

/** An editor's end of an agent: alone, or behind `holdfast wrap`. It reads each message, as an editor does. */
export class WrappedPipe {
  readonly #child: ChildProcess;
  readonly #home: string;
  #rest = "";
  #serial = 0;
  #session = "";
  readonly #waiting = new Map<number, (result: unknown) => void>();
  /** Called with each update. */
  onUpdate: (n: number) => void = () => undefined;
  #updates = 0;

  private constructor(child: ChildProcess, home: string) {
    this.#child = child;
    this.#home = home;
    child.stdout!.setEncoding("utf8").on("data", (text: string) => this.#take(text));
  }

  /** `layout`: the options of `holdfast wrap`; null for the agent alone. */
  static async open(home: string, layout: readonly string[] | null): Promise<WrappedPipe> {
    fs.mkdirSync(home, { recursive: true });
    const agent = [process.execPath, AGENT, ""];
    const command =
      layout === null ? agent : [process.execPath, join(commandFolder, "bin.js"), "wrap", ...layout, "--", ...agent];
    const env = {
      PATH: process.env["PATH"],
      ...{ HOME: home, XDG_STATE_HOME: join(home, "s"), HOLDFAST_STORE: join(home, "store"), HOLDFAST_CONFIG: "" },
    };
    const child = spawn(command[0]!, command.slice(1), { stdio: ["pipe", "pipe", "inherit"], env });
    const pipe = new WrappedPipe(child, home);
    await pipe.ask("initialize", { protocolVersion: 1 });
    const { sessionId } = (await pipe.ask("session/new", { cwd: home, mcpServers: [] })) as { sessionId: string };
    pipe.#session = sessionId;
    return pipe;
  }

  /** The agent sends this many updates as fast as it can. Resolves with the seconds that took. */
  async flood(count: number, kind: "text" | "mixed" = "text"): Promise<number> {
    const before = this.#updates;
    const start = performance.now();
    await this.ask("session/prompt", {
      sessionId: this.#session,
      prompt: [{ type: "text", text: kind === "mixed" ? `${count} mixed` : String(count) }],
    });
    const seconds = (performance.now() - start) / 1000;
    if (this.#updates - before !== count) throw new Error(`${this.#updates - before} of ${count} updates arrived`);
    return seconds;
  }

  /** From a message to the agent until its update is here, in milliseconds: two messages, both recorded. */
  async tick(n: number): Promise<number> {
    const arrived = new Promise<void>((resolve) => {
      this.onUpdate = () => resolve();
    });
    const start = performance.now();
    this.#send({ method: "_tick", params: { sessionId: this.#session, n } });
    await arrived;
    return performance.now() - start;
  }

  /** The process that records: the supervisor, or the one that the editor started. */
  recorder(): number {
    const folder = join(this.#home, "s/holdfast/run");
    const facts = fs.existsSync(folder) ? fs.readdirSync(folder).find((name) => name.endsWith(".json")) : undefined;
    if (facts === undefined) return this.#child.pid!;
    return (JSON.parse(fs.readFileSync(join(folder, facts), "utf8")) as { pid: number }).pid;
  }

  async close(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.stdin!.end();
    await ended;
  }

  ask(method: string, params: object): Promise<unknown> {
    this.#serial += 1;
    const id = this.#serial;
    this.#send({ id, method, params });
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  #send(message: object): void {
    this.#child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #take(text: string): void {
    const lines = text.split("\n");
    lines[0] = this.#rest + lines[0]!;
    this.#rest = lines.pop()!;
    for (const line of lines) {
      const { id, result, error } = JSON.parse(line) as { id?: number; result?: unknown; error?: unknown };
      if (error !== undefined) throw new Error(`the agent answered ${line}`);
      if (id === undefined) {
        this.#updates += 1;
        this.onUpdate(this.#updates);
      } else {
        this.#waiting.get(id)?.(result);
        this.#waiting.delete(id);
      }
    }
  }
}

/** The most memory that a process has had since `resetPeakOf`; null where the kernel does not say. */
export function peakBytesOf(pid: number): number | null {
  const status = readOrNull(`/proc/${pid}/status`);
  const match = status === null ? null : /^VmHWM:\s+(\d+) kB$/m.exec(status);
  return match ? Number(match[1]) * 1024 : null;
}

export function resetPeakOf(pid: number): void {
  if (process.platform === "linux") fs.writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** The processor time that a process has used, in seconds; null where the kernel does not say. */
export function cpuSecondsOf(pid: number): number | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function readOrNull(path: string): string | null {
  return fs.existsSync(path) ? fs.readFileSync(path, "utf8") : null;
}
