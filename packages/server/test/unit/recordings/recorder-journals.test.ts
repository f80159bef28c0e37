import { openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Journal, writeJournals } from "../../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../../holdfast/test/journals/lives.ts";
import { place } from "../../../../holdfast/test/place.ts";
import { apply, type Work } from "../../../src/recordings/apply.ts";

/** The killed sessions that every surface is held to: what `turn.resume` of a recorder does with their calls. */

const folder = place();
let journals: readonly Journal[] = [];
beforeAll(async () => {
  journals = await writeJournals(folder.path, "writer");
});
afterAll(() => folder[Symbol.dispose]());

const unfinished = lives().filter(({ expected }) => expected.state !== "idle");

test.each(unfinished.map(({ name }) => name))("%s: calls stay open as the account says", async (name) => {
  const { id, expected } = journals.find((one) => one.name === name)!;
  const decisions = Object.entries(expected.calls).map(([call, [, decision]]) => [call, decision] as const);
  const keep = decisions.flatMap(([call, decision]) => (decision === "wait" ? [call] : []));
  await using store = await openStore(folder.path, { recordsToolStarts: true });
  await using session = await store.resume<unknown>(id);
  const work: Work = { session, turn: null, draft: null };
  await apply(work, "key", { type: "turn.resume", calls: "rerun", keep, draft: "discard" });
  const open = decisions.flatMap(([call, decision]) => (decision === "tell-model" ? [] : [call]));
  expect(session.turn!.open.map((call) => call.id)).toEqual(open);
});

test("outcomes that the agent knows come first, and without `rerun` the model is told of the rest", async () => {
  await using store = await openStore("memory:", { recordsToolStarts: true });
  const first = await store.create<unknown>({ dialect: "anthropic" });
  const turn = await first.startTurn({ role: "user", content: "go" });
  const uses = ["a", "b", "c", "d"].map((id) => ({ type: "tool_use", id, name: "look", input: {} }));
  await turn.append({ role: "assistant", content: uses });
  await turn.toolStarted("a");
  await first.close();
  await using session = await store.resume<unknown>(first.id);
  const work: Work = { session, turn: null, draft: null };
  const outcomes = { a: { value: "seen" }, b: { error: "dark" } };
  await apply(work, "key", { type: "turn.resume", calls: "close", keep: ["a", "c"], outcomes, draft: "discard" });
  expect(session.turn!.open.map((call) => call.id)).toEqual(["c"]);
  const content = JSON.stringify(session.entries.map(({ message }) => message));
  expect(content).toMatch(/"seen".*"dark"/);
  expect(content).toMatch(/"d","content":"Not run/);
});
