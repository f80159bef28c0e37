import { writeSync } from "node:fs";
import { join } from "node:path";
import { type AnthropicMessage, openStore } from "holdfast";
import { runShell } from "../../src/tools/shell/shell.ts";

/**
 * An agent that runs one command by the real tool in a real session, and waits to be killed where it is told to:
 * `processes-agent.ts <job>`.
 */
export interface Job {
  readonly address: string;
  readonly cwd: string;
  readonly outputs: string;
  readonly command: string;
  /** The program that writes the session. Then `outputs` has a folder for each session. */
  readonly app?: string;
  /** Where it stands still. */
  readonly at: "spawned" | "recorded" | "printed" | "ended" | "nowhere";
}

export type Said =
  | { readonly e: "session"; readonly session: string }
  | { readonly e: "process"; readonly pid: number; readonly started: string }
  | { readonly e: "at" }
  | { readonly e: "result"; readonly text: string };

const job = JSON.parse(process.argv[2]!) as Job;
const say = (said: Said): number => writeSync(3, `${JSON.stringify(said)}\n`);

function here(): Promise<never> {
  setInterval(() => undefined, 1000);
  say({ e: "at" });
  return new Promise(() => undefined);
}

const call = { type: "tool_use", id: "call_0", name: "shell", input: { command: job.command } };
const store = await openStore(job.address, { recordsToolStarts: true, ...(job.app ? { app: job.app } : {}) });
const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
say({ e: "session", session: session.id });
const turn = await session.startTurn({ role: "user", content: "run it" });
await turn.append({ role: "assistant", content: [call] } as AnthropicMessage);
await turn.tool("call_0", async (signal) => {
  const context = {
    cwd: job.cwd,
    outputs: job.app ? join(job.outputs, session.id) : job.outputs,
    env: process.env,
    process: async (id: string, process: { pid: number; started: string; group?: true }) => {
      say({ e: "process", pid: process.pid, started: process.started });
      if (job.at === "spawned") await here();
      await turn.toolProcess(id, process);
      if (job.at === "recorded") await here();
    },
    output: (_id: string, text: string) => {
      if (job.at === "printed" && text.includes("one")) void here();
    },
  };
  const text = await runShell(context, "call_0", { command: job.command }, signal);
  say({ e: "result", text });
  if (job.at === "ended") await here();
  return text;
});
await turn.end();
await store.close();
