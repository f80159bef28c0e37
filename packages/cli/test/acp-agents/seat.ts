import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import type { Home } from "../command.ts";
import { type Editor, editorOf } from "../editor.ts";
import type { Installed } from "./agents.ts";
import { killAll, processesOf, treeOf } from "./processes.ts";

/** `direct`: wrapped, as a child of the proxy, without a supervisor. */
export const LAYOUTS = ["alone", "wrapped", "direct"] as const;
export type Layout = (typeof LAYOUTS)[number];

export const KILLS = ["the group", "the whole tree", "the proxy alone", "the agent alone"] as const;
export type Kill = (typeof KILLS)[number];

/** An editor with an agent, and every line that the agent's side sent it. */
export interface Seat extends Editor {
  /** As they came, without the newline. What follows the last newline is not a line. */
  readonly lines: readonly string[];
  /** As they were sent. */
  readonly sent: readonly string[];
}

/** Starts the agent as editors do, in a session of its own, and says hello. */
export async function takeSeat(
  home: Home,
  installed: Installed,
  layout: Layout,
  answer: (asked: RequestPermissionRequest) => Promise<string | null>,
): Promise<Seat> {
  const child = startAgent(home, installed, layout);
  const lines = linesOf(child.stdout);
  const sent: string[] = [];
  const write = child.stdin.write.bind(child.stdin) as (...args: unknown[]) => boolean;
  child.stdin.on("error", () => undefined);
  child.stdin.write = (...args: unknown[]) => {
    sent.push(Buffer.from(args[0] as Uint8Array).toString("utf8"));
    return write(...args);
  };
  return { ...(await editorOf(child, answer)), lines, sent };
}

function startAgent(home: Home, { command, env }: Installed, layout: Layout): ChildProcessWithoutNullStreams {
  if (layout !== "alone") {
    const flags = layout === "direct" ? ["--direct"] : [];
    return home.start(["wrap", ...flags, "--", ...command], { env, detached: true });
  }
  const [program = "", ...args] = command;
  return spawn(program, args, {
    ...{ cwd: home.work, detached: true, stdio: "pipe" },
    env: { PATH: process.env["PATH"], ...home.env, ...env },
  });
}

function linesOf(stream: NodeJS.ReadableStream): readonly string[] {
  const lines: string[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  stream.on("data", (chunk: Buffer) => {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  return lines;
}

/** SIGKILL, without a warning, for what `kill` names. */
export function strike(kill: Kill, home: Home, installed: Installed, { child }: Seat): void {
  killAll(victimsOf(kill, home, installed, child.pid!));
}

/** Process ids; a negative one is a group. */
function victimsOf(kill: Kill, home: Home, installed: Installed, pid: number): number[] {
  switch (kill) {
    case "the group":
      return [-pid];
    case "the whole tree":
      return treeOf(pid);
    case "the proxy alone":
      return [pid];
    case "the agent alone": {
      // An agent may start itself again with other options: the first one is what the proxy knows.
      const agent = processesOf(home.path).find(({ command }) => command.join("\0") === installed.command.join("\0"));
      return [agent!.pid];
    }
  }
}
