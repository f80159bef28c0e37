import { existsSync } from "node:fs";
import { setTimeout as passed } from "node:timers/promises";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { openStore } from "holdfast";
import { temporaryHome } from "../command.ts";
import { eventually } from "../end-to-end/run-lines.ts";
import { type Agent, type Installed, PROMPTS, type PromptName, signOf } from "./agents.ts";
import { killAll, processesOf } from "./processes.ts";
import { linesNotRecorded } from "./recorded-lines.ts";
import { type Kill, type Layout, type Seat, strike, takeSeat } from "./seat.ts";
import { isEnded, type Shown, shownBy } from "./shown.ts";

const { session } = methods.agent;

export const STATES = ["idle", "streaming", "permission open", "tool running"] as const;
export type State = (typeof STATES)[number];

export interface Cell {
  readonly agent: Agent;
  readonly layout: Layout;
  readonly kill: Kill;
  readonly state: State;
  /** How long to wait before the load. Default: until no process is left. */
  readonly pauseMs?: number;
}

/** What was left of a session after a kill. */
export interface Outcome {
  readonly cell: Cell;
  readonly prompts: readonly string[];
  /** What the editor showed up to the kill, or up to the agent's restart if only the agent was killed. */
  readonly seen: Shown;
  /** What a new editor was shown by `session/load`; why not, if it could not. */
  readonly loaded: Shown | string;
  /** How many updates came only after the answer to `session/load`, though all must come before it. */
  readonly late: number;
  /** Lines that the editor saw and the journal lacks. */
  readonly unrecorded: readonly string[];
  /** The agent answered the next prompt in the loaded session. */
  readonly isAnswered: boolean;
  /** Only if the agent alone was killed: what the editor that stayed was told, and whether it was answered again. */
  readonly stayed: { readonly told: string; readonly isAnswered: boolean } | null;
  /** Command lines of processes that had not ended some time after the kill, or after the editor had left. */
  readonly left: readonly string[];
}

const SECOND: Readonly<Record<State, PromptName | null>> = {
  idle: null,
  streaming: "stream",
  "permission open": "work",
  "tool running": "work",
};

/**
 * How long processes may take to end by themselves. Wrap waits for a running turn first, then cancels it. Nobody ends
 * those of an agent that runs alone; what is wrapped gets as long as a busy machine may need.
 */
const LEFT_MS = { alone: 20_000, wrapped: 100_000 };
/** How long an agent that can load gets to send the rest of its own replay, which wrap does not let through. */
const LATE_MS = 1_500;

/** Plays one cell of the matrix: a turn that completes, a second one up to the state, the kill, and then the load. */
export async function playCell(cell: Cell): Promise<Outcome> {
  using home = temporaryHome();
  await using installed = await cell.agent.install(home);
  try {
    return await play(cell, home, installed);
  } finally {
    killAll(processesOf(home.path).map(({ pid }) => pid));
  }
}

async function play(cell: Cell, home: ReturnType<typeof temporaryHome>, installed: Installed): Promise<Outcome> {
  const { agent, layout, kill, state } = cell;
  const second = SECOND[state];
  const prompts: PromptName[] = second === null ? ["talk"] : ["talk", second];
  installed.expect(prompts);
  let isPatient = false;
  const first = await takeSeat(home, installed, layout, async () =>
    isPatient ? new Promise<null>(() => undefined) : agent.allow,
  );
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await ask(first, sessionId, "talk");
  isPatient = state === "permission open";
  const before = first.lines.length;
  const asked = first.asked.length;
  const open = second === null ? null : ask(first, sessionId, second).catch((error: unknown) => error);
  await eventually(() => isReached(cell, first, before, asked, signOf(home)));

  installed.expect(["after"]);
  isPatient = false;
  strike(kill, home, installed, first);
  const staysOpen = layout !== "alone" && kill === "the agent alone";
  let stayed: Outcome["stayed"] = null;
  const left: string[] = [];
  if (staysOpen) {
    const told = open === null ? "" : String(await open);
    const from = first.lines.length;
    prompts.push("after");
    // It may be killed so shortly before that the proxy has not noticed: then it says so, and the person asks again.
    await ask(first, sessionId, "after").catch(async () => {
      prompts.push("after");
      await ask(first, sessionId, "after");
    });
    const { text } = shownBy(first.lines.slice(from), sessionId);
    stayed = { told, isAnswered: text.includes(agent.says.after) };
    await first.leave();
  } else await first.ended;
  left.push(...(await leftovers(home.path, layout)));

  await passed(cell.pauseMs ?? 0);
  installed.expect(["after"]);
  const next = await takeSeat(home, installed, layout, async () => agent.allow);
  const canLoad = next.lines.some((line) => line.includes('"loadSession":true'));
  const seen = shownBy(first.lines, sessionId);
  const outcome = { cell, prompts: prompts.map((name) => PROMPTS[name]), seen, stayed };
  const unrecorded =
    layout === "alone" ? [] : linesNotRecorded(first.lines.filter(isOfAgent), sessionId, await recordsOf(home.store));
  if (!canLoad) {
    await next.leave();
    return { ...outcome, loaded: "it cannot load", late: 0, unrecorded, isAnswered: false, left };
  }
  const failure = await next.agent
    .request(session.load, { sessionId, cwd: home.work, mcpServers: [] })
    .then(() => null, String);
  const punctual = next.lines.length;
  if (agent.canLoad) await passed(LATE_MS);
  const loaded = failure ?? shownBy(next.lines, sessionId);
  const late = next.lines
    .slice(punctual)
    .filter((line) => /"(?:user|agent)_message_chunk"|"tool_call/.test(line)).length;
  const from = next.lines.length;
  if (failure === null) await ask(next, sessionId, "after").catch(() => undefined);
  const isAnswered = shownBy(next.lines.slice(from), sessionId).text.includes(agent.says.after);
  await next.leave();
  left.push(...(await leftovers(home.path, layout)));
  return { ...outcome, loaded, late, unrecorded, isAnswered, left };
}

/** Not what wrap itself tells the person about the session: that is no part of it. */
function isOfAgent(line: string): boolean {
  return !line.includes('"agent_thought_chunk","content":{"type":"text","text":"Restored');
}

async function recordsOf(path: string): Promise<unknown[]> {
  await using store = await openStore(path);
  const { sessions } = await store.list({ empty: true });
  const records: unknown[] = [];
  for (const { id } of sessions) records.push(...(await Array.fromAsync(store.history(id))));
  return records;
}

function ask(seat: Seat, sessionId: string, prompt: PromptName): Promise<unknown> {
  return seat.agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text: PROMPTS[prompt] }] });
}

/** The second turn has come as far as the cell wants it. */
function isReached({ agent, state }: Cell, seat: Seat, before: number, asked: number, sign: string): boolean {
  const since = seat.lines.slice(before);
  switch (state) {
    case "idle":
      return true;
    case "streaming":
      return (
        since.filter((line) => line.includes('"agent_message_chunk"')).length >= (agent.name === "example" ? 1 : 20)
      );
    case "permission open":
      return seat.asked.length > asked;
    case "tool running":
      return agent.name === "example" ? since.some((line) => line.includes('"tool_call"')) : existsSync(sign);
  }
}

/** Waits until every process of the home has ended. What has not after a while is ended here, and reported. */
async function leftovers(home: string, layout: Cell["layout"]): Promise<string[]> {
  const until = performance.now() + LEFT_MS[layout === "alone" ? "alone" : "wrapped"];
  while (performance.now() < until) {
    if (processesOf(home).length === 0) return [];
    await passed(50);
  }
  const left = processesOf(home);
  killAll(left.map(({ pid }) => pid));
  return left.map(({ command }) => command.join(" ").slice(0, 100));
}

/** What is wrong with a wrapped session; nothing, if wrap keeps its word. Pure. */
export function faultsOf({
  cell,
  prompts,
  seen,
  loaded,
  late,
  unrecorded,
  isAnswered,
  stayed,
  left,
}: Outcome): string[] {
  const faults: string[] = [];
  const expected = (holds: boolean, otherwise: string): void => {
    if (!holds) faults.push(otherwise);
  };
  expected(left.length === 0, `processes were left behind: ${left.join("; ")}`);
  expected(unrecorded.length === 0, `${unrecorded.length} lines are not recorded, such as ${unrecorded[0]}`);
  if (stayed) {
    expected(
      cell.state === "idle" || stayed.told.includes("The agent has ended"),
      `the editor was told: ${stayed.told}`,
    );
    expected(stayed.isAnswered, "the next prompt in the same editor was not answered");
  }
  if (typeof loaded === "string") return [...faults, `the session was not loaded: ${loaded}`];
  const asked = loaded.prompts.filter((text) => !text.startsWith("[The turn before this was interrupted"));
  expected(JSON.stringify(asked) === JSON.stringify(prompts), `prompts: ${JSON.stringify(asked)}`);
  expected(
    loaded.text.startsWith(seen.text),
    `text: ${JSON.stringify([seen.text, loaded.text].map((text) => text.slice(-300)))}`,
  );
  const titles = (tools: Shown["tools"]): string => JSON.stringify(tools.map(({ title }) => title));
  expected(
    titles(loaded.tools).startsWith(titles(seen.tools).slice(0, -1)),
    `tools: ${titles(loaded.tools)}, seen: ${titles(seen.tools)}`,
  );
  expected(
    loaded.tools.every(({ status }) => isEnded(status)),
    `open calls: ${JSON.stringify(loaded.tools)}`,
  );
  seen.tools.forEach(({ status }, at) => {
    const replayed = loaded.tools[at];
    if (isEnded(status)) expected(replayed?.status === status, `call ${at} was ${status}, and is ${replayed?.status}`);
    else expected(isEnded(replayed?.status ?? ""), `call ${at}: ${JSON.stringify(replayed)}`);
  });
  expected(late === 0, `${late} updates came after the answer`);
  expected(isAnswered, "the next prompt was not answered");
  return faults;
}
