import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { acpProgram, installAcpPrograms, installDrivenPrograms } from "../../../../scripts/acp-agents.ts";
import { setup } from "../build.ts";
import { faultsOf, type Outcome, playCell } from "./cell.ts";
import { driveAgent } from "./drive.ts";
import { DRIVEN_AGENTS } from "./driven.ts";
import { notHere, titleOf, wholeMatrix } from "./matrix.ts";
import { tableOf } from "./table.ts";

const PAGE = join(import.meta.dirname, "../../../../docs/acp-agents.md");
const HELP = `npm run acp-agents -- [options]

Installs agents of the Agent Client Protocol from npm, runs them offline, alone and wrapped, and kills them: the group, the
whole tree, the proxy alone, the agent alone; idle, while streaming, with a permission open, with a tool running. Then loads
the session and compares. Exits 1 if a wrapped session lacks anything, or leaves a process behind (except with --direct).

  --agent <name>   one agent, or several (example, gemini, opencode)
  --layout <name>  one layout, or several (alone, wrapped, direct)
  --kill <name>    one kill, or several ("the group", "the whole tree", "the proxy alone", "the agent alone")
  --drive <kills>  instead: drive Codex, Claude Code and Gemini CLI unattended (holdfast run --agent) with a model on the
                   loopback interface, and kill each so often at random instants, alone or with its driver
  --seed <n>       with --drive: the random instants
  --jobs <n>       cells at a time (default: 2)
  --write          write the table of docs/acp-agents.md
  --help
`;

process.exitCode = await main();

async function main(): Promise<number> {
  const list = { type: "string", multiple: true, default: [] as string[] } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      ...{ agent: list, layout: list, kill: list, jobs: { type: "string", default: "2" } },
      ...{ write: flag, help: flag, drive: { type: "string" }, seed: { type: "string" } },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  if (notHere !== null) {
    console.log(`not run: ${notHere}`);
    return 1;
  }
  await setup();
  if (values.drive !== undefined) return drive(Number(values.drive), Number(values.seed ?? Date.now()), values.agent);
  await installAcpPrograms();
  const isIn = (given: readonly string[], name: string): boolean => given.length === 0 || given.includes(name);
  const cells = wholeMatrix.filter(
    ({ agent, layout, kill }) =>
      isIn(values.agent, agent.name) &&
      isIn(values.layout, layout) &&
      isIn(values.kill, kill) &&
      acpProgram(agent.name).missing === null,
  );
  if (cells.length === 0) {
    console.error(`No such cells.\n\n${HELP}`);
    return 2;
  }
  const outcomes: Outcome[] = [];
  let failed = 0;
  let played = 0;
  const waiting = [...cells];
  const work = async (): Promise<void> => {
    for (let cell = waiting.shift(); cell; cell = waiting.shift()) {
      const outcome = await playCell(cell).catch((error: unknown) => String(error));
      played += 1;
      if (typeof outcome === "string") {
        failed += 1;
        console.log(`${played}/${cells.length} ${titleOf(cell)}: it could not be played: ${outcome}`);
        continue;
      }
      outcomes.push(outcome);
      // Without a supervisor, nobody is left to end what a killed proxy leaves behind: the table says what that was.
      const judged = cell.layout === "direct" ? { ...outcome, left: [] } : outcome;
      const faults = cell.layout === "alone" ? [] : faultsOf(judged);
      if (faults.length > 0) failed += 1;
      console.log(`${played}/${cells.length} ${titleOf(cell)}: ${faults.join("; ") || "as expected"}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  const table = tableOf(outcomes);
  console.log(`\n${table}\n`);
  if (values.write) {
    const [before, after] = readFileSync(PAGE, "utf8").split(
      /(?<=<!-- matrix: begin -->\n)[\s\S]*(?=<!-- matrix: end -->)/,
    );
    writeFileSync(PAGE, `${before}${table}\n${after}`);
  }
  console.log(failed === 0 ? "Every wrapped session was complete." : `${failed} wrapped sessions were not complete.`);
  return failed === 0 ? 0 : 1;
}

async function drive(kills: number, seed: number, names: readonly string[]): Promise<number> {
  await installAcpPrograms();
  await installDrivenPrograms();
  console.log(`--seed ${seed}`);
  let state = seed % 2_147_483_648;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  let isGood = true;
  for (const agent of DRIVEN_AGENTS) {
    if (names.length > 0 && !names.includes(agent.name)) continue;
    const { name, version, package: from } = agent.program;
    const {
      faults,
      by,
      kills: all,
      inTurn,
      inStep,
      turns,
      retries,
    } = await driveAgent(agent, kills, random, console.log);
    const how = `${by.everything} with everything, ${by["the agent alone"]} alone; ${inTurn} in a turn, ${inStep} in a step`;
    const words =
      faults.length === 0 ? "every turn was finished, and nothing was left behind" : `${faults.length} faults`;
    console.log(`${name} (${from} ${version}): ${all} kills (${how}), ${turns} turns, ${retries} retries: ${words}`);
    isGood &&= faults.length === 0;
  }
  return isGood ? 0 : 1;
}
