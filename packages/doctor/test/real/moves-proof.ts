import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Door, AGENTS as READERS, readConversations, sessionsHere } from "../../src/index.ts";
import type { Place, Unit } from "./agent.ts";
import { AGENTS } from "./agents.ts";
import { installProgram } from "./programs.ts";
import { listRecordings, placeRecording } from "./recording.ts";
import { run } from "./run.ts";
import { breachesOf } from "./units.ts";

/**
 * Moves recorded sessions from each agent to each other one with `holdfast export --to`, and lets the other agent go on
 * with them: its request to the model must have every text, call and result, once and in order. Prints a line for each
 * pair, and exits 1 if one is refused or lacks something.
 */
const { values } = parseArgs({
  options: {
    from: {
      type: "string",
      multiple: true,
      default: ["claude-code", "codex", "copilot", "gemini", "opencode", "pi", "dsh"],
    },
    to: { type: "string", multiple: true, default: ["claude-code", "codex", "copilot", "gemini", "opencode", "pi"] },
    story: { type: "string", multiple: true, default: ["work"] },
    keep: { type: "boolean", default: false },
    show: { type: "boolean", default: false },
  },
});

const HOLDFAST = ["--conditions=holdfast-source", join(import.meta.dirname, "../../../cli/src/bin.ts")];

interface Moved {
  readonly id: string;
  readonly files: readonly string[];
  readonly resume: readonly string[];
  readonly leftOut: readonly string[];
}

/** Gemini CLI puts the name of the tool before an id in its file, and takes it away again. */
const bareId = (id: string): string => id.replace(/^\w+?__/, "");

let failures = 0;
for (const from of values.from)
  for (const story of values.story) for (const to of values.to) failures += await prove(from, story, to);
process.exitCode = failures === 0 ? 0 : 1;

async function prove(from: string, story: string, to: string): Promise<number> {
  const recording = listRecordings(from).findLast(
    (each) => each.story === story || (from === "dsh" && story === "work" && each.story === "plain"),
  );
  if (!recording) return 0;
  const root = mkdtempSync(join(tmpdir(), "holdfast-moves-"));
  try {
    const source = placeRecording(recording, join(root, "source"));
    const place = { home: join(root, "home"), work: join(root, "work") };
    mkdirSync(place.home);
    mkdirSync(place.work);
    using door = new Door();
    const [found] = [...sessionsHere(READERS, { environment: {}, home: source.home }, door)];
    const wanted = await wantedOf(found!, door);
    // Both agents' folders are in one home, as on a user's machine.
    cpSync(source.home, place.home, { recursive: true });
    const moved = move(found!.session.id, to, place);
    for (const words of moved.leftOut) console.log(`     ${words}`);
    const agent = AGENTS[to]!;
    const program = await installProgram(agent.name);
    if (to === "opencode") {
      const env = { XDG_DATA_HOME: join(place.home, ".local/share"), XDG_CONFIG_HOME: join(place.home, ".config") };
      const { status, out, err } = await run([...program.command, "import", moved.files[0]!], place, { env });
      if (status !== 0) throw new Error(`opencode import: ${out}${err}`);
    }
    const verdict = await agent.judge(program, place, moved.id);
    const have = verdict.units.map(keyOf);
    const missing = missingIn(have, wanted);
    const breaches = breachesOf(verdict.units.filter((unit) => unit.kind !== "reasoning"));
    const isGood = verdict.loads && missing.length === 0 && verdict.isListed !== false && breaches.length === 0;
    const words = verdict.loads
      ? `${verdict.units.length} units shown, ${wanted.length} wanted`
      : `refused: ${verdict.says}`;
    console.log(
      `${isGood ? "good" : "BAD "} ${from} ${story} -> ${to}: ${words}${verdict.isListed === false ? ", not listed" : ""}`,
    );
    for (const key of missing) console.log(`     lacks, or out of order: ${key.slice(0, 160)}`);
    for (const breach of breaches) console.log(`     ${breach}`);
    if (values.show) for (const unit of verdict.units) console.log(`     ${unit.kind}: ${unit.text.slice(0, 100)}`);
    return isGood ? 0 : 1;
  } catch (error) {
    console.log(`BAD  ${from} ${story} -> ${to}: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    if (values.keep) console.log(`     kept in ${root}`);
    else rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

function move(id: string, to: string, { home, work }: Place): Moved {
  const env = { PATH: process.env["PATH"], HOME: home, HOLDFAST_STORE: join(home, "store") };
  const args = [...HOLDFAST, "export", id, "--to", to, "--cwd", work, "--json"];
  const ended = spawnSync(process.execPath, args, { cwd: work, env, encoding: "utf8" });
  if (ended.status !== 0) throw new Error(`holdfast export: ${ended.stderr}`);
  return JSON.parse(ended.stdout) as Moved;
}

/** Every text, call and result of the conversation as the source's own agent goes on with it. */
async function wantedOf(
  { agent, session }: { agent: (typeof READERS)[number]; session: Parameters<typeof readConversations>[1] },
  door: Door,
): Promise<string[]> {
  const { conversations } = await readConversations(agent, session, door);
  return conversations[0]!.messages.flatMap(({ role, content }) =>
    (typeof content === "string" ? [{ type: "text", text: content }] : content).flatMap((block): string[] => {
      const fields = block as Readonly<Record<string, unknown>>;
      if (fields["type"] === "tool_use")
        return [`call ${bareId(String(fields["id"]))} ${JSON.stringify(fields["input"])}`];
      if (fields["type"] === "tool_result") return [`result ${bareId(String(fields["tool_use_id"]))}`];
      return fields["type"] === "text" ? [`${role} ${fields["text"]}`] : [];
    }),
  );
}

function keyOf({ kind, text, call: id }: Unit): string {
  const call = bareId(id ?? "");
  if (kind === "call") return `call ${call} ${text}`;
  return kind === "result" ? `result ${call}` : `${kind} ${text}`;
}

/** Results of one batch may come in any order; everything else must be there in its own. */
function missingIn(have: readonly string[], wanted: readonly string[]): string[] {
  let at = 0;
  return wanted.filter((key) => {
    if (key.startsWith("result ")) return !have.includes(key);
    const found = have.findIndex(
      (other, index) => index >= at && (other === key || other.includes(key.replace(/^\w+ /, ""))),
    );
    if (found >= 0) at = found;
    return found < 0;
  });
}
