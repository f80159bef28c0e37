import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import {
  type ClientApp,
  type ClientCapabilities,
  type CreateTerminalRequest,
  methods,
  RequestError,
} from "@agentclientprotocol/sdk/unstable";

interface Terminal {
  readonly child: ChildProcess;
  readonly exit: Promise<{ exitCode: number | null; signal: string | null }>;
  output: string;
}

/** The part of an editor that an agent may use: files with unsaved changes, and terminals with real processes. */
export class EditorProject {
  readonly capabilities: ClientCapabilities;
  /** Texts that are not saved, by path. */
  readonly unsaved = new Map<string, string>();
  /** What the agent asked for, in order: `read /a`, `write /a`, `create npm test`, `kill 1`, `release 1`. */
  readonly asked: string[] = [];
  readonly created: CreateTerminalRequest[] = [];
  /** Called before a file is written: may throw, or never return. */
  beforeWrite: (path: string) => Promise<void> = async () => undefined;
  /** Called after a file is written, before the agent is told. */
  afterWrite: (path: string) => Promise<void> = async () => undefined;
  readonly #terminals = new Map<string, Terminal>();

  constructor(capabilities: ClientCapabilities) {
    this.capabilities = capabilities;
  }

  serve(app: ClientApp): void {
    const { fs, terminal } = methods.client;
    app
      .onRequest(fs.readTextFile, ({ params: { path } }) => {
        this.asked.push(`read ${path}`);
        return { content: this.#textOf(path) };
      })
      .onRequest(fs.writeTextFile, async ({ params: { path, content } }) => {
        this.asked.push(`write ${path}`);
        await this.beforeWrite(path);
        this.unsaved.delete(path);
        writeFileSync(path, content);
        await this.afterWrite(path);
        return {};
      })
      .onRequest(terminal.create, ({ params }) => {
        this.created.push(params);
        const id = String(this.created.length);
        this.asked.push(`create ${params.args?.at(-1)}`);
        this.#terminals.set(id, startTerminal(params));
        return { terminalId: id };
      })
      .onRequest(terminal.output, ({ params }) => ({ output: this.#of(params.terminalId).output, truncated: false }))
      .onRequest(terminal.waitForExit, ({ params }) => this.#of(params.terminalId).exit)
      .onRequest(terminal.kill, ({ params: { terminalId } }) => {
        this.asked.push(`kill ${terminalId}`);
        end(this.#of(terminalId));
        return {};
      })
      .onRequest(terminal.release, ({ params: { terminalId } }) => {
        this.asked.push(`release ${terminalId}`);
        end(this.#of(terminalId));
        this.#terminals.delete(terminalId);
        return {};
      });
  }

  /** The terminals that the agent has not released. */
  get open(): readonly string[] {
    return [...this.#terminals.keys()];
  }

  /** Ends what runs in the terminals, as an editor does whose agent is gone. */
  async close(): Promise<void> {
    for (const terminal of this.#terminals.values()) {
      end(terminal);
      await terminal.exit;
    }
  }

  #of(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (terminal) return terminal;
    throw RequestError.invalidParams({ id }, "There is no such terminal.");
  }

  #textOf(path: string): string {
    const text = this.unsaved.get(path);
    if (text !== undefined) return text;
    try {
      return readFileSync(path, "utf8");
    } catch {
      throw RequestError.resourceNotFound(path);
    }
  }
}

function startTerminal({ command, args = [], env = [], cwd }: CreateTerminalRequest): Terminal {
  const given = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const child = spawn(command, args, {
    // The editor's environment holds the user's keys.
    env: { PATH: process.env["PATH"], EDITOR_API_KEY: "editor-secret", ...given },
    ...(cwd == null ? {} : { cwd }),
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = new Promise<{ exitCode: number | null; signal: string | null }>((resolve) =>
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal })),
  );
  const terminal: Terminal = { child, exit, output: "" };
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => {
      terminal.output += text;
    });
  return terminal;
}

function end({ child }: Terminal): void {
  if (child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch {
    // It has ended just now.
  }
}
