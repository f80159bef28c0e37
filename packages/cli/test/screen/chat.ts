import type { TestContext } from "vitest";
import type { Home } from "../command.ts";
import { Terminal, type TerminalOptions, whyNoTerminal } from "./terminal.ts";

/** A command with a screen in a terminal of its own, working in the folder of this home. */
export async function inTerminal(
  { skip }: TestContext,
  home: Home,
  args: readonly string[],
  options: Partial<TerminalOptions> = {},
): Promise<Terminal> {
  if (whyNoTerminal !== null) skip(whyNoTerminal);
  return await Terminal.open(args, { cwd: home.work, ...options, env: { ...home.env, ...options.env } });
}

/** `holdfast chat`, ready to be talked to. */
export async function chat(
  context: TestContext,
  home: Home,
  args: readonly string[] = [],
  options: Partial<TerminalOptions> = {},
): Promise<Terminal> {
  const terminal = await inTerminal(context, home, ["chat", ...args], options);
  await terminal.until(/^(idle|! interrupted|! stopped|! failed|\? waiting)\b/m);
  return terminal;
}

/** Waits until this has been said, and the turn has ended. What was said may have scrolled away by then. */
export async function answered(terminal: Terminal, said: string): Promise<string> {
  return await terminal.untilAll(said, /^idle\b/m);
}

/** Waits until the turn was stopped. What the model did not finish is said in the same word as in a list. */
export async function stopped(terminal: Terminal): Promise<string> {
  return await terminal.untilAll("stopped by user", /^! stopped\b/m);
}

/** Waits until the question that stands on the screen takes an answer. */
export async function answerable(terminal: Terminal): Promise<string> {
  return await terminal.until(/^\? Allow[\s\S]*▸ n {2}deny/m);
}
