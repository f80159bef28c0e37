import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { acpProgram } from "../../../../scripts/acp-agents.ts";
import { bin, ended, type Home, temporaryHome } from "../command.ts";
import { eventually } from "../end-to-end/run-lines.ts";
import { PROMPTS } from "./agents.ts";
import { notHere } from "./matrix.ts";
import { killAll, processesOf } from "./processes.ts";

const acpx = acpProgram("acpx");
const example = acpProgram("example");

/** A client that others wrote, with an agent that cannot load. */
class Terminal {
  readonly #home: Home;
  readonly #agent: string;

  constructor(home: Home, isWrapped: boolean) {
    this.#home = home;
    const wrap = isWrapped ? [process.execPath, bin, "wrap", "--"] : [];
    this.#agent = [...wrap, ...example.command].join(" ");
  }

  start(...args: readonly string[]) {
    const [program = "", ...first] = acpx.command;
    const flags = ["--approve-all", "--format", "json", "--agent", this.#agent];
    const child = spawn(program, [...first, ...flags, ...args], {
      ...{ cwd: this.#home.work, stdio: "pipe" },
      env: { PATH: process.env["PATH"], ...this.#home.env, HOLDFAST_CONFIG: "" },
    });
    child.stdin.end();
    return child;
  }

  async run(...args: readonly string[]): Promise<string> {
    const child = this.start(...args);
    const { code, stdout, stderr } = await ended(child);
    if (code !== 0) throw new Error(`acpx ${args.join(" ")} failed: ${stderr}${stdout}`);
    return stdout;
  }

  /** The agent's session, as the client has stored it. */
  get session(): string {
    const folder = join(this.#home.path, ".acpx/sessions");
    const [file] = readdirSync(folder).filter((name) => /^[^.]+\.json$/.test(name));
    return JSON.parse(readFileSync(join(folder, file!), "utf8")).acp_session_id;
  }
}

async function killAndAskAgain(isWrapped: boolean): Promise<void> {
  using home = temporaryHome();
  const terminal = new Terminal(home, isWrapped);
  try {
    await terminal.run("sessions", "new");
    const before = terminal.session;
    await terminal.run("prompt", PROMPTS.talk);

    // Everything at once, in the middle of a call: the client, its queue, the proxy, the agent.
    const child = terminal.start("prompt", PROMPTS.work);
    await said(child, '"tool_call"');
    killAll(processesOf(home.path).map(({ pid }) => pid));
    await ended(child);

    const stdout = await terminal.run("prompt", PROMPTS.after);
    expect(terminal.session === before).toBe(isWrapped);
    if (isWrapped) {
      expect(stdout).toContain("Restored from Holdfast's record");
      const rows = (await home.run(["ls", "--json"])).stdout.trim().split("\n");
      expect(rows).toHaveLength(1);
      const { stdout: shown } = await home.run(["show", "latest", "--full"]);
      for (const prompt of [PROMPTS.talk, PROMPTS.work, PROMPTS.after]) expect(shown).toContain(prompt);
    }
    await terminal.run("sessions", "close");
    await eventually(() => processesOf(home.path).length === 0);
  } finally {
    killAll(processesOf(home.path).map(({ pid }) => pid));
  }
}

/** Rejects if it ends before it has said this. */
function said(child: ChildProcessWithoutNullStreams, word: string): Promise<void> {
  let text = "";
  return new Promise((resolve, reject) => {
    const look = (chunk: Buffer): void => {
      text += chunk.toString("utf8");
      if (text.includes(word)) resolve();
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.once("close", () => reject(new Error(`acpx ended before ${word}: ${text}`)));
  });
}

const missing = notHere ?? acpx.missing ?? example.missing;
if (missing === null) {
  test.concurrent(`acpx ${acpx.version} keeps the session of a wrapped agent that cannot load, over a kill of everything`, () =>
    killAndAskAgain(true));
  test.concurrent(`acpx ${acpx.version} begins another session if that agent is alone`, () => killAndAskAgain(false));
} else console.log(`not run: the sessions of acpx: ${missing}`);
