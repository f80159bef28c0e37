import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openStore } from "holdfast";
import { defaultCache, install } from "../../../../bench/peers/install.ts";
import { startServer } from "../../../postgres/test/server/server.ts";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { HoldfastSessionStore } from "../../src/claude-agent/index.ts";
import { blocks, compilable } from "../end-to-end/guide.ts";
import { anthropic } from "../loopback/anthropic.ts";
import { type Answer, type Body, loopback } from "../loopback/server.ts";
import { CLAUDE_AGENT_SDK } from "./sdk.ts";

/**
 * `npm run claude-agent`: the real SDK and the real Claude Code, against a model on 127.0.0.1. It compiles the guide
 * with the SDK's own types, and runs examples/claude-agent.mjs on one machine, kills everything there, and goes on on
 * another one, with a folder or PostgreSQL between them. (A machine is a home of its own.) Checked by what the model
 * was sent and by what the tools did.
 */

const ROOT = resolve(import.meta.dirname, "../../../..");
const SDK = CLAUDE_AGENT_SDK.packages["@anthropic-ai/claude-agent-sdk"];
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "12" },
    seed: { type: "string", default: `${Date.now() % 1_000_000}` },
    /** A Claude Code that is installed already. */
    claude: { type: "string" },
    help: { type: "boolean" },
  },
});
if (values.help) {
  console.log(`npm run claude-agent -- [--kills <n>] [--seed <n>] [--claude <path>]

Installs the Claude Agent SDK ${SDK} (350 MB, outside the workspace) and kills it.

Example: npm run claude-agent -- --kills 4`);
  process.exit(0);
}
const seed = Number(values.seed);
const random = seededRandom(seed);
console.log(`seed ${seed}; to repeat: npm run claude-agent -- --kills ${values.kills} --seed ${seed}`);

const installed = join(await install(defaultCache(process.env), CLAUDE_AGENT_SDK, console.log), "node_modules");

const home = mkdtempSync(join(tmpdir(), "holdfast-claude-agent-"));
const program = join(home, "program");
mkdirSync(program);
const guide = Object.fromEntries(blocks("claude-agent").map(({ code }, n) => [`block-${n}.ts`, code]));
const command = compilable(program, guide);
symlinkSync(join(installed, "@anthropic-ai"), join(program, "node_modules", "@anthropic-ai"));
execFileSync(process.execPath, command, { stdio: "inherit" });
console.log(`the ${Object.keys(guide).length} blocks of the guide compile with the SDK's types`);
writeFileSync(join(program, "example.mjs"), readFileSync(join(ROOT, "examples/claude-agent.mjs")));

const work = join(home, "work");
mkdirSync(work);
const effects = join(work, "effects");
let calls = 0;
let seconds = 0;
let onRequest = (_: Body): void => undefined;

/** Asks for one tool call in answer to a prompt, unless it is told that the call has run. */
function reply(body: Body): Answer {
  onRequest(body);
  const messages = body["messages"] as { role: string; content: unknown }[];
  const last = JSON.stringify(messages.at(-1));
  if (last.includes('"tool_result"')) return { text: "It is done." };
  if (JSON.stringify(messages).includes(">> effects")) return { text: "I know that it ran." };
  const id = `toolu_${seed}_${++calls}`;
  const line = `echo ${id} >> effects; sleep ${seconds}`;
  return { text: "I do it.", calls: [{ id, name: "Bash", input: { command: line, description: "does it" } }] };
}

// Claude Code's requests are its own: they use features in beta that the rules of the provider do not have.
await using model = await loopback({ ...anthropic, judge: () => [] }, reply);
const server = await startServer(["fsync=off", "full_page_writes=off"]);
let failures = 0;
let kills = 0;

function check(isTrue: boolean, what: string): void {
  if (isTrue) return;
  failures++;
  console.error(`FAILED: ${what}`);
}

function effectsSoFar(): string[] {
  return existsSync(effects) ? readFileSync(effects, "utf8").split("\n").filter(Boolean) : [];
}

/** Runs the example on a machine of its own. `until`: when everything there dies. */
async function live(store: string, prompt: string, until?: () => Promise<void>): Promise<string> {
  const machine = mkdtempSync(join(home, "machine-"));
  const child = spawn(process.execPath, ["--conditions=holdfast-source", join(program, "example.mjs"), prompt], {
    cwd: work,
    // Its own group: Claude Code and its tools die with it.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      HOME: machine,
      CLAUDE_CONFIG_DIR: join(machine, "claude"),
      HOLDFAST_STORE: store,
      ANTHROPIC_BASE_URL: model.url.replace(/\/v1$/, ""),
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ...(values.claude ? { CLAUDE_CODE: values.claude } : {}),
    },
  });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  // The SDK is one line of a megabyte, which Node quotes if it throws.
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    const lines = text.split("\n").filter((line) => line.trim() !== "" && line.length < 500);
    for (const line of lines) console.error(`  ${line}`);
  });
  const ended = new Promise<void>((done) => child.once("close", () => done()));
  if (until) {
    await Promise.race([until(), ended]);
    if (child.exitCode === null) {
      kills++;
      process.kill(-child.pid!, "SIGKILL");
    }
  }
  await ended;
  rmSync(machine, { recursive: true, force: true, maxRetries: 5 });
  return out;
}

async function waitFor(what: () => boolean): Promise<void> {
  for (let n = 0; n < 600 && !what(); n++) await sleep(50);
}

/** What Claude Code calls the folder. */
const project = work.replaceAll(/[^a-zA-Z0-9]/g, "-");

async function hasSession(store: string): Promise<boolean> {
  await using sessions = await HoldfastSessionStore.open(store);
  return (await sessions.listSessions(project)).length > 0;
}

async function isListed(address: string, title: string): Promise<boolean> {
  await using store = await openStore(address);
  return (await store.list()).sessions.some((session) => session.title === title);
}

/** One death, and the life after it. */
async function round(n: number, store: string): Promise<void> {
  rmSync(effects, { force: true });
  const prompt = `Do it, round ${n}.`;
  const at = (["request", "running", "after"] as const)[n % 3]!;
  const delayMs = random.below(300);
  const what = `round ${n}, killed ${delayMs} ms after: ${at}, ${store.split(":")[0]}`;
  let isAsked = false;
  onRequest = (body) => {
    isAsked ||= JSON.stringify(body["messages"]).includes(prompt);
  };
  seconds = at === "running" ? 5 : 0;
  await live(store, prompt, async () => {
    await waitFor(() => (at === "request" ? isAsked : effectsSoFar().length > 0));
    await sleep(delayMs);
  });
  const isMirrored = await hasSession(store);
  const ran = effectsSoFar();
  check(ran.length <= 1, `${what}: an effect happened twice: ${ran.join(", ")}`);
  seconds = 0;
  let request = "";
  onRequest = (body) => {
    request ||= JSON.stringify(body["messages"]);
  };
  const out = await live(store, "Go on.");
  // What was killed before its first entry was mirrored cannot be resumed, but it is listed.
  if (isAsked && isMirrored) check(request.includes(prompt), `${what}: the model never learns of the prompt`);
  if (isAsked) check(await isListed(store, prompt), `${what}: the prompt is lost`);
  for (const id of ran) check(request.includes(id), `${what}: the model never learns that ${id} ran`);
  check(/It is done|I know that it ran/.test(out), `${what}: the next life did not reach its end: ${out}`);
  const all = effectsSoFar();
  check(all.filter((id) => ran.includes(id)).length === ran.length, `${what}: what ran was run again`);
  await using sessions = await HoldfastSessionStore.open(store);
  const [session] = await sessions.listSessions(project);
  const left = session ? await sessions.interruption(session.sessionId) : null;
  check(
    left !== null && left.calls.length + left.prompts.length === 0,
    `${what}: something is left: ${JSON.stringify(left)}`,
  );
  if (session) await sessions.delete({ projectKey: project, sessionId: session.sessionId });
}

try {
  for (let n = 0; n < Number(values.kills); n++) {
    const store = n % 2 === 0 ? join(home, "store") : `${server.url}?schema=claude_agent`;
    await round(n, store);
    console.log(`${n + 1} of ${values.kills}`);
  }
} finally {
  await server.stop();
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
console.log(`${kills} kills, ${model.requests.length} requests, ${failures} failures`);
process.exitCode = failures === 0 ? 0 : 1;
