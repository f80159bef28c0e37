import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Agent, Place, Unit, Verdict } from "./agent.ts";
import { AGENTS } from "./agents.ts";
import { runCampaign } from "./campaign.ts";
import { installProgram } from "./programs.ts";
import { listRecordings, placeRecording, ROOT, saveRecording } from "./recording.ts";
import { EMPTY, storyOf } from "./stories.ts";
import { breachesOf, compareUnits, spokenIn } from "./units.ts";

const HELP = `npm run doctor-lab -- [options]

Installs the agents whose sessions the doctor repairs from npm (into a cache, 4 GB for all), lets each of them load the
recorded sessions offline, and prints what it shows its model. Exits 1 if a program shows another conversation than when
the session was recorded.

  --agent <name>   one agent, or several (${Object.keys(AGENTS).join(", ")})
  --story <name>   one story, or several
  --record         let the programs write the sessions anew, in ${ROOT}
  --damage         harm a recorded session in every way that is known, and print what the program makes of it
  --campaign       harm recorded sessions at random places, repair them, and let the program load what came out;
                   with --seed <n>, --cases <n> (of each agent), --case <n> (only this one, and keep its files), --kind <text> (damage whose
                   name has it), --without-program (the doctor's reader alone judges: fast)
  --show           print every unit that a model is shown
  --help
`;

const { values } = parseArgs({
  options: {
    agent: { type: "string", multiple: true, default: Object.keys(AGENTS) },
    story: { type: "string", multiple: true, default: [] as string[] },
    record: { type: "boolean", default: false },
    damage: { type: "boolean", default: false },
    campaign: { type: "boolean", default: false },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    cases: { type: "string", default: "50" },
    case: { type: "string" },
    kind: { type: "string" },
    "without-program": { type: "boolean", default: false },
    show: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  let failures = 0;
  for (const name of values.agent) {
    if (values.campaign) {
      failures += await runCampaign({
        ...{ agent: name, seed: Number(values.seed), cases: Number(values.cases), stories: values.story },
        ...(values.case === undefined ? {} : { only: Number(values.case) }),
        ...(values.kind === undefined ? {} : { damage: values.kind }),
        withoutProgram: values["without-program"],
      });
      continue;
    }
    const agent = AGENTS[name];
    if (!agent) throw new Error(`There is no agent ${name}.\n\n${HELP}`);
    if (values.damage) await harmAll(agent);
    else failures += values.record ? await recordAll(agent) : await judgeAll(agent);
  }
  return failures === 0 ? 0 : 1;
}

function isAskedFor(story: string): boolean {
  return values.story.length === 0 || values.story.includes(story);
}

async function recordAll(agent: Agent): Promise<number> {
  const program = await installProgram(agent.name);
  for (const name of agent.stories.filter(isAskedFor)) {
    const started = performance.now();
    // Not forced: another recorder at work here is told so.
    mkdirSync(ROOT);
    try {
      const place: Place = { home: join(ROOT, "home"), work: join(ROOT, "work") };
      mkdirSync(place.home);
      mkdirSync(place.work);
      const ids = await agent.write(program, place, name === EMPTY.name ? EMPTY : storyOf(name));
      agent.shorten?.(place);
      const sessions = [];
      for (const id of ids) {
        const { loads, says, units } = await judgeCopy(agent, place, id);
        if (!loads && name !== "killed") throw new Error(`${agent.name} does not load ${name} as it wrote it: ${says}`);
        sessions.push({ id, units });
      }
      const recorded = new Date().toISOString().slice(0, 10);
      const { format } = agent;
      const head = { format, program: agent.name, version: program.version, story: name, recorded, sessions };
      saveRecording(head, place, (path) => agent.isRecorded(path));
      const took = ((performance.now() - started) / 1000).toFixed(0);
      console.log(`${agent.name} ${program.version}, ${name}: ${ids.length} sessions recorded in ${took} s`);
    } finally {
      rmSync(ROOT, { recursive: true, force: true, maxRetries: 5 });
    }
  }
  return 0;
}

async function judgeAll(agent: Agent): Promise<number> {
  const program = await installProgram(agent.name);
  let failures = 0;
  for (const recording of listRecordings(agent.format)) {
    if (!isAskedFor(recording.story) || recording.version !== program.version) continue;
    for (const { id } of recording.sessions) {
      const root = mkdtempSync(join(tmpdir(), "holdfast-lab-"));
      const place = placeRecording(recording, root);
      const verdict = await agent.judge(program, place, id);
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
      const before = place.sessions.find((session) => session.id === id)!.units;
      const words =
        recording.program === agent.name
          ? inWords(verdict, before)
          : inWords({ ...verdict, units: spokenIn(verdict.units) }, spokenIn(before));
      // Gemini CLI does not list what it resumes, if the session has two files (docs/agents.md).
      if (!words.endsWith("loads: everything")) failures += 1;
      console.log(`${agent.name} ${program.version}, ${recording.story}: ${words}`);
      for (const { kind, call, text } of values.show ? verdict.units : [])
        console.log(`  ${kind} ${call ?? ""} ${JSON.stringify(text.slice(0, 100))}`);
    }
  }
  return failures;
}

/** One table: what the program does with each kind of damage, without a doctor. */
async function harmAll(agent: Agent): Promise<void> {
  const program = await installProgram(agent.name);
  const recording = listRecordings(agent.format).find(
    ({ story, version }) => story === agent.harmedStory && version === program.version,
  );
  if (!recording) throw new Error(`There is no recording of ${agent.name} ${program.version}.`);
  console.log(`\n| ${agent.name} ${program.version} | |\n|---|---|`);
  let before: readonly Unit[] = [];
  for (const { kind, harm } of [{ kind: "nothing", harm: () => true }, ...agent.damage]) {
    const root = mkdtempSync(join(tmpdir(), "holdfast-lab-"));
    const place = placeRecording(recording, root);
    const { id } = place.sessions[0]!;
    if (harm(agent.fileOf(place, id)!)) {
      const verdict = await agent.judge(program, place, id);
      const units = verdict.units.map((unit) => ({ ...unit, text: unit.text.replaceAll(root, ROOT) }));
      // What this program shows of the healthy session, which comes first.
      if (kind === "nothing") before = units;
      console.log(`| ${kind} | ${inWords({ ...verdict, says: verdict.says.replaceAll(root, ROOT), units }, before)} |`);
    }
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

function inWords({ loads, says, units, isListed }: Verdict, before: readonly Unit[]): string {
  const unlisted = isListed === false ? "not listed; " : "";
  if (!loads) return `${unlisted}refuses: ${says.split("\n").filter(Boolean).slice(-2).join(" ").slice(0, 200)}`;
  const { missing, added, isReordered } = compareUnits(before, units);
  const breaches = breachesOf(units);
  const known = breachesOf(before);
  const words = [
    missing.length === 0 ? "everything" : `${missing.length} of ${before.length} units missing`,
    ...(added.length === 0
      ? []
      : [`${added.length} more: ${added[0]!.kind} ${JSON.stringify(added[0]!.text.slice(0, 60))}`]),
    ...(isReordered ? ["in another order"] : []),
    ...breaches
      .filter((breach) => !known.includes(breach))
      .slice(0, 1)
      .map((breach) => `API: ${breach}`),
  ];
  return `${unlisted}loads: ${words.join("; ")}`;
}

/** In the same place, because paths count: the original comes back afterwards. */
async function judgeCopy(agent: Agent, place: Place, id: string): ReturnType<Agent["judge"]> {
  const kept = mkdtempSync(join(tmpdir(), "holdfast-lab-kept-"));
  cpSync(place.home, kept, { recursive: true, preserveTimestamps: true });
  try {
    return await agent.judge(await installProgram(agent.name), place, id);
  } finally {
    rmSync(place.home, { recursive: true, force: true, maxRetries: 5 });
    cpSync(kept, place.home, { recursive: true, preserveTimestamps: true });
    rmSync(kept, { recursive: true, force: true });
  }
}
