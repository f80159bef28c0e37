import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Door, fix, AGENTS as READERS, sessionsHere } from "../../src/index.ts";
import { RECORD_DAMAGE } from "../damage/claude-code-damage.ts";
import { LINE_DAMAGE, linesOf, seeded } from "../damage/line-damage.ts";
import type { Unit } from "./agent.ts";
import { AGENTS } from "./agents.ts";
import { installProgram } from "./programs.ts";
import { listRecordings, placeRecording, ROOT } from "./recording.ts";

/**
 * Damages recorded sessions, repairs them, and lets the agent itself load what came out: the program's own request
 * shows which units are there. Prints a line for each, and exits 1 if a program refuses one or lacks a unit that no
 * damage cost.
 */
const { values } = parseArgs({
  options: {
    agent: { type: "string", default: "claude-code" },
    story: { type: "string", default: "work" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    /** How many places each kind of damage is made at. */
    places: { type: "string", default: "1" },
    kind: { type: "string" },
  },
});

const agent = AGENTS[values.agent]!;
const program = await installProgram(agent.name);
const recording = listRecordings(agent.format).find(
  ({ story, version }) => story === values.story && version === program.version,
);
if (!recording) throw new Error(`${values.story} was never recorded with ${agent.name} ${program.version}`);
const reader = READERS.find(({ name }) => name === agent.format)!;
const random = seeded(Number(values.seed));
console.log(`seed ${values.seed}`);
const key = ({ kind, text, call }: Unit): string => JSON.stringify([kind, kind === "result" ? call : text]);
let failures = 0;
const records = values.agent === "claude-code" ? RECORD_DAMAGE.map((damage) => ({ ...damage, isLossless: false })) : [];
for (const { kind, isLossless, apply } of [...LINE_DAMAGE, ...records]) {
  if (values.kind !== undefined && !values.kind.split(",").includes(kind)) continue;
  for (let turn = 0; turn < Number(values.places); turn++) {
    const root = mkdtempSync(join(tmpdir(), "holdfast-proof-"));
    try {
      const place = placeRecording(recording, root);
      using door = new Door();
      const [found] = [...sessionsHere([reader], { environment: {}, home: place.home }, door)];
      const { session } = found!;
      const lines = linesOf(readFileSync(session.path));
      const places = lines.map((_, at) => at).filter((at) => apply(lines, at, seeded(0)) !== null);
      const at = places[Math.floor(random() * places.length)];
      if (at === undefined) continue;
      writeFileSync(session.path, apply(lines, at, random)!);
      const fixed = await fix(reader, session, { backups: join(root, "backups") });
      const verdict = await agent.judge(program, place, session.id);
      const units = JSON.stringify(recording.sessions.find(({ id }) => id === session.id)!.units);
      const wanted = JSON.parse(units.replaceAll(ROOT, root)) as Unit[];
      const have = new Set(verdict.units.map(key));
      const missing = wanted.filter((unit) => !have.has(key(unit)));
      const isGood = verdict.loads && fixed !== null && missing.length <= (isLossless ? 0 : 1);
      if (!isGood) failures++;
      const words = verdict.loads ? `${verdict.units.length} of ${wanted.length} units` : `refused: ${verdict.says}`;
      console.log(`${isGood ? "good" : "BAD "} ${kind} at line ${at + 1}: ${words}`);
      for (const unit of isGood ? [] : missing) console.log(`     lacks ${key(unit).slice(0, 120)}`);
    } finally {
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    }
  }
}
process.exitCode = failures === 0 ? 0 : 1;
