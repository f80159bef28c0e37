import type { Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import type { Ended } from "../wrap/agent-process.ts";
import { Outlet } from "../wrap/outlet.ts";
import type { WrappedAgent } from "../wrap/wrapped-agent.ts";

const LOOK_MS = 20;

/**
 * One editor, one agent, in this process. Resolves with the end of the agent: after the editor is gone, or after an
 * agent that could not begin. `graceMs`: how long a turn goes on without its editor.
 */
export async function runDirect(
  wrapped: WrappedAgent,
  input: AsyncIterable<Buffer>,
  output: Writable,
  graceMs: number,
): Promise<Ended> {
  const { early } = await wrapped.start();
  const outlet = new Outlet(output);
  const client = wrapped.attach({ write: (line) => outlet.write(line) });
  const left = wrapped.read(client, input).then(() => null);
  const ended = await Promise.race([early, left]);
  if (ended !== null) return ended;
  await left;
  const until = performance.now() + graceMs;
  while (wrapped.owes(client) && performance.now() < until) await passed(LOOK_MS);
  await wrapped.detach(client);
  while (wrapped.isBusy && performance.now() < until) await passed(LOOK_MS);
  return wrapped.end();
}
