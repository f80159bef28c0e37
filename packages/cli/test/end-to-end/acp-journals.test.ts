import { methods } from "@agentclientprotocol/sdk/unstable";
import { type Account, accountOf, openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Journal, POLICY, writeJournals } from "../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../holdfast/test/journals/lives.ts";
import { temporaryHome } from "../command.ts";
import { type Editor, openEditor, shownIn } from "../editor.ts";

/** The killed sessions that every surface is held to, as an editor is told of them. */

const { session } = methods.agent;
const home = temporaryHome();
let own: readonly Journal[] = [];
let foreign: readonly Journal[] = [];
let editor: Editor;
beforeAll(async () => {
  own = await writeJournals(home.store, "holdfast", home.work);
  foreign = await writeJournals(home.store, "other", home.work);
  // A question comes again at once only if every open call waits. In these, another call has not started.
  editor = await openEditor(home, async () => null);
});
afterAll(async () => {
  await editor.kill();
  home[Symbol.dispose]();
});

const names = lives().map(({ name }) => name);

async function accountIn(id: string): Promise<Account> {
  await using store = await openStore(home.store);
  return accountOf(await store.read(id), { app: "holdfast", policy: POLICY });
}

test.each(names)("%s: loaded, it is told in the words of the account", async (name) => {
  const { id, expected } = own.find((one) => one.name === name)!;
  const { words, calls, can } = await accountIn(id);
  await editor.agent.request(session.load, { sessionId: id, cwd: home.work, mcpServers: [] });
  const told = shownIn(editor.updates, id).join("\n");
  // Opening a session ends a turn that had its answer.
  const isTold = expected.state !== "idle" && !expected.answered;
  expect(told.includes(`The last turn: ${words.status}.`)).toBe(isTold);
  for (const call of calls) expect(told.includes(`look: ${call.words}.`)).toBe(isTold);
  expect(told.includes("Send /finish")).toBe(isTold && can.finish === true);
  expect(editor.asked).toEqual([]);
});

test.each(names)("%s: another program's is refused, with its name", async (name) => {
  const { id } = foreign.find((one) => one.name === name)!;
  const before = await accountIn(id);
  const loading = editor.agent.request(session.load, { sessionId: id, cwd: home.work, mcpServers: [] });
  await expect(loading).rejects.toThrow('written by "other"');
  expect(shownIn(editor.updates, id)).toEqual([]);
  expect(await accountIn(id)).toEqual(before);
});
