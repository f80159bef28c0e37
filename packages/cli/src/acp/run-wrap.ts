import { spawn } from "node:child_process";
import { constants } from "node:os";
import { Library, WrappedAgent } from "@holdfast/acp";
import { openStore } from "holdfast";
import type { Config } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { redaction } from "../store/open.ts";
import { plainLine } from "../terminal/plain.ts";

/** How long a turn goes on without its editor, and then each further step of ending the agent. */
const GRACE_MS = 3_000;

/** Leaves the agent's exit code in `process.exitCode`. */
export async function runWrap(command: readonly string[], config: Config): Promise<void> {
  // A person signs in to the agent: the editor starts the same command in a terminal.
  if (process.stdin.isTTY) return passThrough(command);
  const log = (line: string): void => void process.stderr.write(`holdfast: ${plainLine(line)}\n`);
  const store = await openStore(config.store, { durability: "process", ...redaction(config) });
  try {
    for (const warning of store.warnings) log(warning);
    const agent = new WrappedAgent({
      ...{ command, log, library: new Library(store, command) },
      ...{ input: process.stdin, output: process.stdout, graceMs: GRACE_MS },
    });
    const { code, signal } = await agent.run().catch((error: unknown) => {
      throw startFailure(command, error);
    });
    process.exitCode = code ?? 128 + constants.signals[signal ?? "SIGTERM"];
  } finally {
    await store.close();
  }
}

async function passThrough([command = "", ...args]: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(startFailure([command], error)));
    child.once("close", (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? "SIGTERM"]));
  });
}

function startFailure([command = ""]: readonly string[], error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (!syscall?.startsWith("spawn")) return error;
  const why =
    code === "ENOENT" ? "no such command" : code === "EACCES" ? "it may not be executed" : (code ?? "unknown");
  const message = `The agent "${plainLine(command)}" could not be started: ${why}. Nothing was touched.`;
  return new CommandError(EXIT.notFound, "AGENT_NOT_STARTED", message, error);
}
