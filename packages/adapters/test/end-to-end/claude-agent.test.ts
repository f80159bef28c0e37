import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cacheFolderOf, defaultCache } from "../../../../bench/peers/install.ts";
import { place } from "../../../holdfast/test/place.ts";
import { type Server, startServer } from "../../../postgres/test/server/server.ts";
import { HoldfastSessionStore } from "../../src/claude-agent/index.ts";
import { ClaudeCode } from "../claude-agent/claude-code.ts";
import { conformance } from "../claude-agent/conformance.ts";
import { CLAUDE_AGENT_SDK } from "../claude-agent/sdk.ts";
import { blocks, compilable } from "./guide.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");
const STAND_IN = resolve(import.meta.dirname, "../claude-agent/stand-in");
const REAL = resolve(import.meta.dirname, "../claude-agent/real.ts");

let server: Server | undefined;
let schemas = 0;
beforeAll(async () => {
  // Nothing here cuts the power.
  server = await startServer(["fsync=off", "full_page_writes=off"]);
});
afterAll(() => server?.stop());

const open = (schema = `claude_${++schemas}`) => HoldfastSessionStore.open(`${server!.url}?schema=${schema}`);

describe("the published cases, in PostgreSQL", () => {
  conformance(() => open());
});

test("a session continues on another machine, which is told what the first one left unfinished", async () => {
  const key = { projectKey: "-work", sessionId: "the-session" };
  await using one = await open("shared");
  const first = await ClaudeCode.start({ key, mirror: one, hooks: { ...one.hooks, PostToolUse: [] }, act: () => "" });
  await first.prompt("Tell everybody.");
  await first.answer("I will.");
  // This machine dies before the call is mirrored.
  const lost = { append: async () => undefined, load: async () => null };
  const dying = await ClaudeCode.start({ key, mirror: lost, hooks: { ...one.hooks, PostToolUse: [] }, act: () => "" });
  await dying.call({ id: "toolu_1", name: "send_mail", input: { to: "all" } });
  await using two = await open("shared");
  const second = await ClaudeCode.start({ key, mirror: two, hooks: two.hooks, act: () => "" });
  expect(second.local).toEqual(first.local);
  expect(await second.prompt("Go on.")).toContain('send_mail {"to":"all"}: it had started');
});

test("the guide counts the lines to adopt", () => {
  const [adopt] = blocks("claude-agent");
  const lines = adopt!.code.split("\n").filter((line) => /\/\/ \d/.test(line));
  expect(lines).toHaveLength(3);
});

/** A folder with programs that import the SDK, and the command that checks their types. */
function programs(folder: string): string[] {
  const guide = Object.fromEntries(blocks("claude-agent").map(({ code }, n) => [`block-${n}.ts`, code]));
  const example = readFileSync(join(ROOT, "examples/claude-agent.mjs"), "utf8");
  const command = compilable(folder, { ...guide, "example.mjs": example });
  mkdirSync(join(folder, "node_modules/@anthropic-ai"));
  symlinkSync(STAND_IN, join(folder, "node_modules/@anthropic-ai/claude-agent-sdk"));
  return command;
}

async function run(cwd: string, program: string, isKilled = false): Promise<string[]> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", program], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    lines.push(line);
    if (isKilled && /kill -9 \d+ now/.test(line)) child.kill("SIGKILL");
  }
  return lines;
}

test("the blocks of the guide compile and run, and examples/claude-agent.mjs goes on after a kill", async () => {
  using here = place();
  execFileSync(process.execPath, programs(here.path), { stdio: "inherit" });
  expect((await run(here.path, "block-0.ts")).at(-1)).toBe("The mail is sent.");
  expect(await run(here.path, "block-1.ts")).toEqual([]);

  const killed = await run(here.path, "example.mjs", true);
  expect(killed).toContain("tool: send_mail");
  const again = await run(here.path, "example.mjs");
  expect(again[0]).toBe(killed[0]);
  expect(again.slice(1)).toEqual(["I do not know whether send_mail took effect: please check."]);
  await using store = await openStore(join(here.path, "agent-data"));
  const { sessions } = await store.list();
  expect(sessions).toMatchObject([{ title: "Tell everybody about the release.", turns: 3, status: "idle" }]);
});

const isInstalled = existsSync(
  join(cacheFolderOf(defaultCache(process.env), CLAUDE_AGENT_SDK, process.version), "complete"),
);

test("the same with the real Claude Code, where it is installed", ({ skip }) => {
  if (!isInstalled) skip('not run: the Claude Agent SDK is not installed; "npm run claude-agent" installs it');
  const out = execFileSync(process.execPath, ["--conditions=holdfast-source", REAL, "--kills", "4"], {
    encoding: "utf8",
  });
  // A kill that comes after the end of the run is none.
  expect(out).toMatch(/[1-4] kills, \d+ requests, 0 failures/);
});
