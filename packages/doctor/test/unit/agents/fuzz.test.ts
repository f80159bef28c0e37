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
