import { readFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { AGENTS, type Agent, type Installed, PROMPTS } from "./agents.ts";
import { notHere } from "./matrix.ts";
import { killAll, processesOf } from "./processes.ts";
import { type Layout, type Seat, takeSeat } from "./seat.ts";

const { session } = methods.agent;

for (const agent of AGENTS) {
  const { name, version, missing } = agent.program;
  const title = `${name} ${version}: wrapped and alone, the same bytes; its session is in ls, show, search and export`;
  if ((notHere ?? missing) === null) test.concurrent(title, () => compare(agent));
  else console.log(`not run: ${title}: ${notHere ?? missing}`);
}

async function compare(agent: Agent): Promise<void> {
  using quiet = temporaryHome();
  using home = temporaryHome();
  const [alone, wrapped] = [await play(agent, quiet, "alone"), await play(agent, home, "wrapped")];

  // In the wrapped run itself: what left one side arrived on the other. Only the capabilities are changed.
  const [capabilities, ...passed] = wrapped.seat.lines;
  const [own, ...said] = wrapped.said;
  expect(passed).toEqual(said);
  expect(wrapped.heard).toEqual(wrapped.seat.sent.join("").trimEnd().split("\n"));
  const [given, offered] = [JSON.parse(own!), JSON.parse(capabilities!)];
  expect(offered.result.agentCapabilities).toMatchObject({ ...given.result.agentCapabilities, loadSession: true });
  expect({ ...offered, result: { ...offered.result, agentCapabilities: {} } }).toEqual({
    ...given,
    result: { ...given.result, agentCapabilities: {} },
  });

  // Both runs: the same lines, but for ids and times. Their order is the agent's, and was compared above.
  const lines = ({ seat, sessionId }: Played, { path }: Home): string[] =>
    seat.lines.slice(1).map((line) => normalised(line, sessionId, path));
  expect(lines(wrapped, home).toSorted()).toEqual(lines(alone, quiet).toSorted());

  const [row] = (await home.run(["ls", "--json"])).stdout.trim().split("\n");
  expect(JSON.parse(row!)).toMatchObject({ status: "idle", title: PROMPTS.talk });
  const { stdout: shown } = await home.run(["show", "latest", "--full"]);
  for (const text of [PROMPTS.talk, agent.says.talk, PROMPTS.act]) expect(shown).toContain(text);
  expect((await home.run(["search", "heron"])).stdout).toContain("heron");
  const { stdout: exported } = await home.run(["export", "latest", "--format", "md"]);
  for (const text of [PROMPTS.talk, agent.says.talk, PROMPTS.act]) expect(exported).toContain(text);
}

interface Played {
  readonly seat: Seat;
  readonly sessionId: string;
  /** What the agent itself said, and what reached it. */
  readonly said: readonly string[];
  readonly heard: readonly string[];
}

async function play(agent: Agent, home: Home, layout: Layout): Promise<Played> {
  await using installed = await agent.install(home);
  const [heard, said] = [join(home.path, "heard"), join(home.path, "said")];
  try {
    installed.expect(["talk", "act"]);
    const seat = await takeSeat(home, listenedTo(installed, heard, said), layout, async () => agent.allow);
    const { sessionId } = await seat.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    for (const text of [PROMPTS.talk, PROMPTS.act])
      await seat.agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    await seat.leave();
    // Wrap has requests of its own: when the editor leaves, it closes the sessions of an agent that can close them.
    const linesIn = (path: string): string[] =>
      readFileSync(path, "utf8")
        .trimEnd()
        .split("\n")
        .filter((line) => !line.includes('"id":"holdfast:'));
    return { seat, sessionId, said: linesIn(said), heard: linesIn(heard) };
  } finally {
    killAll(processesOf(home.path).map(({ pid }) => pid));
  }
}

/** The same agent, with a copy of what it hears and says. */
function listenedTo(installed: Installed, heard: string, said: string): Installed {
  const script = 'heard=$1; said=$2; shift 2; tee "$heard" | "$@" | tee "$said"';
  return { ...installed, command: ["sh", "-c", script, "sh", heard, said, ...installed.command] };
}

/** Without what differs in each run of the agent: ids, times and the folder that it works in. */
function normalised(line: string, session: string, home: string): string {
  return line
    .replaceAll(session, "<session>")
    .replaceAll(home, "<home>")
    .replaceAll(/\b(?:msg|prt|per|ses)_[0-9A-Za-z]+/g, "<id>")
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "<id>")
    .replaceAll(/\d{13}/g, "<time>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>");
}
