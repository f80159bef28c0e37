import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { AGENTS, type Agent, Door, fix } from "../../../src/index.ts";
import { readCorpus } from "../../fuzz/corpus.ts";
import { Inputs } from "../../fuzz/input.ts";
import { checkInput } from "../../fuzz/properties.ts";

/** A few inputs of `npm run fuzz-readers`, always the same ones: what others find is looked for with that command. */
const SEED = 1;
const COUNT = 300 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);

test("readers, judge, plans and repairs throw nothing, lose nothing, and change nothing twice", async () => {
  const inputs = new Inputs(readCorpus(), SEED);
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-fuzz-test-"));
  try {
    for (let index = 0; index < COUNT; index++) {
      const how = { executes: index % 100 === 0, detects: index % 10 === 0 };
      const repeat = `npm run fuzz-readers -- --seed ${SEED} --from ${index} --inputs 1`;
      await expect(checkInput(inputs.at(index), scratch, how), repeat).resolves.toBe(undefined);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
});

/** What it found, and is mended. */
const agentNamed = (wanted: string): Agent => AGENTS.find(({ name }) => name === wanted)!;

test("an id that is too long for the name of a folder hides no other session", () => {
  const chats = join(mkdtempSync(join(tmpdir(), "holdfast-fuzz-test-")), "chats");
  mkdirSync(chats);
  try {
    for (const id of ["9".repeat(400), "short"])
      writeFileSync(join(chats, `session-${id.length}.jsonl`), `${JSON.stringify({ sessionId: id })}\n`);
    using door = new Door();
    expect([...agentNamed("gemini").find(chats, door)].map(({ id }) => id.length)).toEqual([400, 5]);
  } finally {
    rmSync(join(chats, ".."), { recursive: true, force: true });
  }
});

test("a note that the agent repeats is no second copy of the session", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-fuzz-test-"));
  const path = join(folder, "notes.jsonl");
  const note = `${JSON.stringify({ type: "last-prompt", lastPrompt: "?", leafUuid: "a", sessionId: "notes" })}\n`;
  try {
    const said = { type: "user", uuid: "a", parentUuid: null, sessionId: "notes", message: { content: "?" } };
    const whole = `${note}${JSON.stringify(said)}\n${note}`;
    writeFileSync(path, `${whole}<<<<<<< HEAD\n`);
    const session = { agent: "claude-code", id: "notes", path, parts: [] };
    await fix(agentNamed("claude-code"), session, { backups: join(folder, "backups") });
    expect(readFileSync(path, "utf8")).toBe(whole);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

const facts = { sessionId: "4ec7eaea-a92e-4c07-8a8b-8c740c5ae72f", projectHash: "0".repeat(64), startTime: "" };
const noteAt = (lastUpdated: string) => ({ $set: { lastUpdated } });
const said = (id: string, type: string) => ({ id, timestamp: "2026-11-19T21:30:03.252Z", type, content: id });
const snapshot = { $set: { messages: [said("a", "gemini"), said("b", "user")] } };
const call = { type: "CommandExecution", id: "c", command: ["sh", "true"], exit_code: 0, aggregated_output: "" };
const item = { timestamp: "1", type: "event_msg", payload: { type: "item_completed", item: call } };
const payload = { type: "function_call_output", call_id: "c", output: "" };
const output = { timestamp: "2", type: "response_item", payload };
const dshAnswer = (seq: unknown, text: string) => ({
  ...{ type: "assistant/message", seq, time: 1 },
  data: { turn: 1, step: 1, message: { role: "assistant", content: [{ type: "text", text }] } },
});
const clineMessage = (role: string, text: string) => ({ id: text, role, content: [{ type: "text", text }], ts: 1 });
const clineSession = {
  ...{
    version: 1,
    sessionId: "s\0",
    agent: "lead",
    messages: [clineMessage("user", "?"), clineMessage("assistant", "!")],
  },
};

const linesOf = (...records: readonly (object | string)[]): string =>
  records.map((record) => `${typeof record === "string" ? record : JSON.stringify(record)}\n`).join("");

test.each([
  ["a message lost before each of two notes", "gemini", linesOf(facts, noteAt("1"), noteAt("2"))],
  [
    "a lost message whose neighbour in a snapshot was said before",
    "gemini",
    linesOf(facts, snapshot, said("a", "gemini"), noteAt("1"), snapshot, "<<<<<<< HEAD"),
  ],
  [
    "half of a message with the whole of it behind it",
    "gemini",
    linesOf(facts, JSON.stringify(said("a", "user")).replace('"a"}', '"a\xff"}'), said("a", "user")),
  ],
  [
    "an event that stands there twice, and whose call is lost",
    "codex",
    linesOf(item, output, output, item, "<<<<<<< HEAD"),
  ],
  ["a message whose number is none", "dsh", linesOf(dshAnswer("?", "first"), dshAnswer(1, "then"), "<<<<<<< HEAD")],
  [
    "a damaged head in front of the list of messages",
    "cline",
    JSON.stringify(clineSession, null, 2).replace("\\u0000", "\0"),
  ],
])("%s: a fix loses nothing, leaves whole records alone, and a second one changes nothing", async (_, name, text) => {
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-fuzz-test-"));
  const file = name === "cline" ? "s.messages.json" : "s.jsonl";
  try {
    const input = {
      agent: agentNamed(name),
      name: file,
      folder: "s",
      bytes: Buffer.from(text, "latin1"),
      known: new Set<string>(),
    };
    for (const executes of [false, true])
      await expect(checkInput(input, scratch, { executes, detects: true })).resolves.toBe(undefined);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
});
