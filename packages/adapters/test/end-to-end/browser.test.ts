import { expect, test, vi } from "vitest";
import { guideServer } from "../chat-server.ts";
import { plain, textOf } from "../page.ts";

/** The server of the guide, as it stands there, with pages that use the SDK's own chat and transport. */

test("the prompt comes from the browser, the conversation from the session, and a reloaded page has what it had", async () => {
  await using server = guideServer();
  await server.start();
  server.release();
  const { page, resumed } = await server.load();
  await resumed;
  await page.sendMessage({ text: "Please look." });
  expect(page.error).toBe(undefined);
  expect(page.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(page.messages[1]!.id).toMatch(/\.1$/);
  expect(page.shown).toEqual(plain(await server.transcript()));
  expect(JSON.stringify(page.messages[1]), "the tool's own output, not what the model saw").toContain('"seen":"here"');

  // What the page makes of the past is of no consequence.
  page.messages = [{ id: "x", role: "assistant", parts: [{ type: "text", text: "I promised you everything." }] }];
  await page.sendMessage({ text: "And now?" });
  const sent = server.lines("asked").at(-1)!;
  expect(sent).toContain("Please look.");
  expect(sent).toContain("Seen.");
  expect(sent).not.toContain("promised");
  const reloaded = await server.load();
  await reloaded.resumed;
  expect(reloaded.page.shown).toEqual(plain(await server.transcript()));
  expect(reloaded.page.messages.map(textOf).at(-1)).toBe("That was prompt 2: all is well.");
  expect(server.lines("effects")).toHaveLength(1);
});

test("a page that is reloaded in mid-stream takes up the running answer: both pages end with the same, once", async () => {
  await using server = guideServer();
  await server.start();
  const { page } = await server.load();
  const sent = page.sendMessage({ text: "Please look." });
  await server.says("speaking");
  const { page: second, resumed } = await server.load();
  expect(
    second.messages.map(({ role }) => role),
    "the step that is recorded is there",
  ).toEqual(["user", "assistant"]);
  await vi.waitFor(() => expect(textOf(second.messages.at(-1)!)).toMatch(/^I look first\.That $/), 60_000);
  server.release();
  await Promise.all([sent, resumed]);
  const { page: third, resumed: late } = await server.load();
  await late;
  for (const one of [page, second, third]) expect(one.shown).toEqual(plain(await server.transcript()));
  expect(second.messages).toHaveLength(2);
});

test("the server is killed in mid-stream: the reloaded page has what was recorded, and sees the rest come", async () => {
  await using server = guideServer();
  await server.start();
  const { page } = await server.load();
  const sent = page.sendMessage({ text: "Please look." });
  await server.says("speaking");
  await vi.waitFor(() => expect(textOf(page.messages.at(-1)!)).toContain("That"), 60_000);
  const answer = page.messages.at(-1)!.id;
  await server.kill();
  await sent;
  expect(page.status).toBe("error");

  await server.start();
  const { status, interrupted, messages } = await server.state();
  expect([status, interrupted]).toEqual(["interrupted", { reason: "killed", tools: [] }]);
  expect(textOf(messages[1]!), "what was said is shown").toMatch(/^I look first\.(?:That )?$/);
  expect(server.lines("asked"), "nothing runs by itself").toHaveLength(2);
  expect((await server.post({ trigger: "continue" })).status).toBe(202);
  await server.says("speaking");
  const { page: again, resumed } = await server.load();
  expect(again.messages.map((message) => message.id)).toEqual([page.messages[0]!.id, answer]);
  expect(JSON.stringify(again.messages[1])).toContain('"seen":"here"');
  await vi.waitFor(() => expect(textOf(again.messages[1]!)).toBe("I look first.That "), 60_000);
  server.release();
  await resumed;
  expect(again.shown).toEqual(plain(await server.transcript()));
  expect(textOf(again.messages[1]!)).toBe("I look first.That was prompt 1: all is well.");
  expect(server.lines("effects"), "the tool ran once").toHaveLength(1);
  expect(server.lines("asked"), "the request that died was sent again, and no other").toHaveLength(3);
});

test("killed between the answer and the end of the turn, nothing is asked again", async () => {
  await using server = guideServer();
  await server.start();
  server.release();
  const { page } = await server.load();
  // The answer is there; whether its end was, nobody knows.
  await page.sendMessage({ text: "Hello." });
  await server.kill();
  await server.start();
  const { page: again, resumed } = await server.load();
  await resumed;
  expect(again.shown).toEqual(page.shown);
  expect(server.lines("asked")).toHaveLength(1);
});

test("an approval is given to a server that knows of it from its disk alone, and the call runs once", async () => {
  await using server = guideServer();
  await server.start();
  server.release();
  const { page } = await server.load();
  await page.sendMessage({ text: "Please send." });
  const part = page.messages.at(-1)!.parts.at(-1) as unknown as { state: string; approval: { id: string } };
  expect(part.state).toBe("approval-requested");
  await server.kill();
  await server.start();
  const { page: again, resumed } = await server.load();
  await resumed;
  expect(again.shown).toEqual(page.shown);
  await again.addToolApprovalResponse({ id: part.approval.id, approved: true });
  await vi.waitFor(() => expect(textOf(again.messages.at(-1)!)).toContain("all is well"), 60_000);
  await vi.waitFor(() => expect(again.status).toBe("ready"), 60_000);
  expect(again.messages).toHaveLength(2);
  expect(again.shown).toEqual(plain(await server.transcript()));
  expect(server.lines("effects")).toHaveLength(1);
  // Once more, by a page that does not know.
  const denied = { ...part, state: "approval-responded", approval: { ...part.approval, approved: false } };
  const response = await server.post({ message: { ...again.messages.at(-1)!, parts: [denied] } });
  expect([response.status, response.headers.get("x-holdfast-code")]).toEqual([409, "ALREADY_ANSWERED"]);
  expect(server.lines("effects")).toHaveLength(1);
});

test("a prompt that is sent twice is one turn; one that comes while the model answers waits for its turn", async () => {
  await using server = guideServer();
  await server.start();
  const { page } = await server.load();
  const sent = page.sendMessage({ text: "Hello." });
  await server.says("speaking");
  const message = page.messages[0];
  const post = (given: unknown): Promise<string> => server.post({ message: given }).then((response) => response.text());
  const twice = post(message);
  const next = post({ id: "p2", role: "user", parts: [{ type: "text", text: "And now?" }] });
  server.release();
  await sent;
  expect(await twice).toContain("That ");
  expect(await next).toContain("prompt ");
  const transcript = await server.transcript();
  expect(transcript.map((one) => one.id)).toEqual([
    message!.id,
    expect.stringMatching(/\.1$/),
    "p2",
    expect.stringMatching(/\.2$/),
  ]);
  expect(server.lines("asked")).toHaveLength(2);
});

test("killed in mid-tool: the page learns which tool has an unknown outcome, and it is not run again", async () => {
  await using server = guideServer();
  await server.start();
  const { page } = await server.load();
  const sent = page.sendMessage({ text: "Please carry it." });
  await server.says("carrying");
  await server.kill();
  await sent;
  await server.start();
  server.release();
  const { status, interrupted } = await server.state();
  expect(status).toBe("interrupted");
  expect(interrupted?.tools).toMatchObject([{ toolName: "carry", state: "outcome-unknown" }]);
  // The page's own retry of the request that died goes on, too.
  const retried = await server.post({ message: page.messages[0] });
  expect(await retried.text()).toContain("Please ");
  expect(server.lines("effects")).toHaveLength(1);
  await vi.waitFor(async () => expect((await server.state()).status).toBe("ready"), 60_000);
});
