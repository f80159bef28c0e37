import * as fs from "node:fs";
import { AGENTS, diagnose } from "@holdfast/doctor";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { makeConversation } from "../messages.ts";

const CHUNK_BYTES = 2 ** 18;

/**
 * The diagnosis of a session of Claude Code, against what reading and parsing the same lines with care takes; and the
 * peak memory of the process that diagnoses a large one.
 */
export async function doctorRow(bench: Bench, results: Results): Promise<void> {
  const path = bench.path("doctor");
  writeSession(path, bench.size(64, 16) * 2 ** 20);
  const session = { agent: "claude-code", id: "bench", path, parts: [] };
  const agent = AGENTS.find(({ name }) => name === session.agent)!;
  const diagnosing = async (): Promise<void> => {
    const { problems } = await diagnose(agent, session);
    if (problems.length > 0) throw new Error(`the session of the benchmark is damaged: ${problems[0]!.kind}`);
  };
  const rounds: number[] = [];
  const times: [number, number][] = [];
  for (let round = 0; round < 8; round++) {
    const ours = await timed(diagnosing);
    const theirs = await timed(() => parseLines(path));
    // The first round is not compiled yet.
    if (round === 0) continue;
    rounds.push(ours / theirs);
    times.push([ours, theirs]);
  }
  const [ours, theirs] = times[times.length >> 1]!;
  results.figures.push({
    row: "doctor",
    what: "doctor: diagnosis of a session, against reading and JSON.parse of its lines",
    bound: { atMost: 2 },
    unit: "×",
    rounds,
    note: `${ours.toFixed(0)} against ${theirs.toFixed(0)} ms for ${(fs.statSync(path).size / 1e6).toFixed(0)} MB`,
  });
  const large = bench.path("doctor");
  writeSession(large, bench.size(2_048, 256) * 2 ** 20);
  const { peak } = (await bench.child(["diagnose", large])) as { readonly peak: number };
  results.figures.push({
    row: "doctor",
    what: `doctor: peak memory, a session of ${(fs.statSync(large).size / 1e9).toFixed(1)} GB`,
    bound: { under: 200 },
    unit: "MB",
    rounds: [peak / 1e6],
  });
}

/** As Claude Code writes it: each record names the one before. */
function writeSession(path: string, bytes: number): void {
  const messages = makeConversation(1_000, "anthropic").map(({ record }) => record["message"]);
  const file = fs.openSync(path, "w");
  let lines: string[] = [];
  let chars = 0;
  let parent: string | null = null;
  for (let n = 0, size = 0; size < bytes; n++) {
    const round = Math.floor(n / messages.length);
    // Each call has a name of its own.
    const text = JSON.stringify(messages[n % messages.length]).replaceAll(
      /"((?:tool_use_)?id)":"([^"]*)"/g,
      `"$1":"$2-${round}"`,
    );
    const message = JSON.parse(text) as { readonly role: string };
    const uuid = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
    const own = { isSidechain: false, type: message.role, uuid, timestamp: new Date(1.8e12 + n).toISOString() };
    const line = `${JSON.stringify({ parentUuid: parent, ...own, cwd: "/work", sessionId: "bench", version: "2.1.328", message })}\n`;
    parent = uuid;
    size += line.length;
    chars += line.length;
    lines.push(line);
    if (chars > CHUNK_BYTES) {
      fs.writeSync(file, lines.join(""));
      lines = [];
      chars = 0;
    }
  }
  fs.writeSync(file, lines.join(""));
  fs.closeSync(file);
}

function parseLines(path: string): void {
  const file = fs.openSync(path, "r");
  let rest = Buffer.alloc(0);
  for (;;) {
    const bytes = Buffer.allocUnsafe(CHUNK_BYTES);
    const count = fs.readSync(file, bytes);
    if (count === 0) break;
    const chunk = Buffer.concat([rest, bytes.subarray(0, count)]);
    let at = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, at)) {
      JSON.parse(chunk.toString("utf8", at, end));
      at = end + 1;
    }
    rest = chunk.subarray(at);
  }
  fs.closeSync(file);
}

async function timed(work: () => void | Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
