import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Agent, Place } from "./agent.ts";
import { AGENTS } from "./agents.ts";
import { installProgram } from "./programs.ts";
import { listRecordings, placeRecording, ROOT, saveRecording } from "./recording.ts";
import { EMPTY, storyOf } from "./stories.ts";

const HELP = `npm run doctor-lab -- [options]

Installs the agents whose sessions the doctor repairs from npm (into a cache, 3 GB for all), lets each of them load the
recorded sessions offline, and prints what it shows its model. Exits 1 if a program shows another conversation than when
the session was recorded.

  --agent <name>   one agent, or several (${Object.keys(AGENTS).join(", ")})
  --story <name>   one story, or several
  --record         let the programs write the sessions anew, in ${ROOT}
  --show           print every unit that a model is shown
  --help
`;

const { values } = parseArgs({
  options: {
    agent: { type: "string", multiple: true, default: Object.keys(AGENTS) },
    story: { type: "string", multiple: true, default: [] as string[] },
    record: { type: "boolean", default: false },
    show: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  let failures = 0;
  for (const name of values.agent) {
    const agent = AGENTS[name];
    if (!agent) throw new Error(`There is no agent ${name}.\n\n${HELP}`);
    failures += values.record ? await recordAll(agent) : await judgeAll(agent);
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
    for (const { id, units } of recording.sessions) {
      const root = mkdtempSync(join(tmpdir(), "holdfast-lab-"));
      const verdict = await agent.judge(program, placeRecording(recording, root), id);
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
      const isSame = verdict.units.length === units.length;
      if (!isSame) failures += 1;
      const state = verdict.loads
        ? `loads, ${verdict.units.length} of ${units.length} units`
        : `refuses: ${verdict.says}`;
      console.log(`${agent.name} ${program.version}, ${recording.story}: ${state}`);
      for (const { kind, call, text } of values.show ? verdict.units : [])
        console.log(`  ${kind} ${call ?? ""} ${JSON.stringify(text.slice(0, 100))}`);
    }
  }
  return failures;
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
