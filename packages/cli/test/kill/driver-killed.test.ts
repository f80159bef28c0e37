import { setTimeout as passed } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Ended, ended, type Home, temporaryHome } from "../command.ts";
import { accountsIn, leftIn, notesOf, promptsOf, strike, taskAgent, VICTIMS } from "../driver.ts";
import { eventually } from "../end-to-end/run-lines.ts";

/**
 * Kills {the driver, the supervisor, the agent, all} at each stage of an unattended turn, and again in the recovery.
 */

const STEPS = 3;
const PROMPT = "Do all steps.";
const CAN = {
  "cannot restore": {},
  resumes: { sessionCapabilities: { resume: {} } },
} as const;

const STAGES = {
  "an agent has a session": (home: Home) => notesOf(home, "starts").length > 0,
  "the prompt is there": (home: Home) => notesOf(home, "prompts").length > 0,
  "a call is running": (home: Home) => notesOf(home, "ledger").includes("begin 2"),
  "a call has ended": (home: Home) => notesOf(home, "ledger").includes("end 2"),
} as const;

/** Starts it, or continues what an earlier one has begun: as a person, or a supervisor of services, would. */
async function start(home: Home, agent: string) {
  // One that was killed before it had recorded the prompt has recorded nothing to continue.
  const how = (await accountsIn(home)).length > 0 ? ["--continue", "--finish"] : [PROMPT];
  return home.start(["run", "--agent", agent, ...how]);
}

/** What holds however it was killed. */
async function judge(home: Home, { code, stderr }: Ended): Promise<void> {
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(await leftIn(home)).toEqual([]);
  const ledger = notesOf(home, "ledger");
  for (let step = 1; step <= STEPS; step++) {
    // Two agents at once would both begin it: one of them has not seen what the other did.
    expect(ledger.filter((line) => line === `begin ${step}`)).toHaveLength(1);
    expect(ledger.filter((line) => line === `end ${step}` || line === `found ${step}`).length).toBeGreaterThan(0);
  }
  expect((await accountsIn(home)).map(({ state }) => state)).toEqual(["idle"]);
  // The agent got the prompt by itself once, and each time after that with what had happened.
  const prompts = promptsOf(home);
  expect(prompts.filter((texts) => texts.length === 1 && texts[0] === PROMPT).length).toBeLessThanOrEqual(1);
  for (const texts of prompts.slice(1)) {
    expect(texts.at(-1)).toBe(PROMPT);
    expect(texts.at(-2)).toMatch(/^\[(?:Your turn was cut off|The program that runs you was restarted)/);
  }
}

test.for(Object.keys(STAGES).flatMap((stage) => VICTIMS.map((victim) => [stage, victim] as const)))(
  "when %s, %s killed: the turn is finished, nothing begins twice, and no process is left",
  async ([stage, victim]) => {
    using home = temporaryHome();
    const can = victim === "the supervisor" ? CAN.resumes : CAN["cannot restore"];
    const agent = taskAgent(home, { steps: STEPS, ms: 120, can });
    const first = await start(home, agent);
    const firstEnd = ended(first);
    await eventually(() => STAGES[stage as keyof typeof STAGES](home));
    strike(home, victim);
    let end = await firstEnd;
    for (let lives = 1; end.code !== 0; lives++) {
      // By then, a life that nobody kills has to have finished it.
      expect(lives, end.stderr).toBeLessThan(3);
      end = await ended(await start(home, agent));
    }
    await judge(home, end);
  },
);

test("killed at random again and again, also while it recovers", async () => {
  using home = temporaryHome();
  const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`HOLDFAST_SEED=${seed}`);
  let state = seed;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  const agent = taskAgent(home, { steps: STEPS, ms: 150, can: CAN.resumes });
  for (let kills = 0; kills < 8; kills++) {
    const child = await start(home, agent);
    const end = ended(child);
    await Promise.race([passed(random() * 1_800), end]);
    strike(home, VICTIMS[Math.floor(random() * VICTIMS.length)]!);
    // One that lives may go on; the next life begins when it is over.
    await Promise.race([end, passed(random() * 500)]);
    strike(home, "all of them");
    await end;
    if (notesOf(home, "ledger").some((line) => line === `end ${STEPS}` || line === `found ${STEPS}`)) break;
  }
  let end = await ended(await start(home, agent));
  // A turn that was killed too often in a row waits for a person, who lets it be tried again.
  if (end.stderr.includes("parked"))
    end = await ended(home.start(["run", "--agent", agent, "-c", "--finish", "--retry"]));
  await judge(home, end);
}, 120_000);
