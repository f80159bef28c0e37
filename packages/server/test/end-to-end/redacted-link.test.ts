import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { HoldfastClient } from "../../src/client/index.ts";
import type { Operation } from "../../src/schemas/operation.ts";
import { operations } from "../../src/schemas/operations.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

const RANDOM = "x7Kq9ZtR2mWc4VbN8sLd1FgH6jPe3YuA5oTi";
const TOKEN = `ghp_${RANDOM}`;
/** So that no part of it is there either. */
const PARTS = Array.from({ length: RANDOM.length - 7 }, (_, at) => RANDOM.slice(at, at + 8));

const partsIn = (text: string): string[] => PARTS.filter((part) => text.includes(part));

/** Everything that a reader receives of a session's events. */
function follow(
  client: HoldfastClient,
  id: string,
  signal: AbortSignal,
): { text: string; readonly names: Set<string> } {
  const heard = { text: "", names: new Set<string>() };
  void (async () => {
    for await (const { name, data, lastId } of client.events(id, { signal })) {
      heard.text += `${name} ${lastId} ${data}\n`;
      heard.names.add(name);
    }
  })();
  return heard;
}

/** Every operation that a read-only token can call. */
async function readAll(stage: ServerStage, token: string, id: string): Promise<string> {
  const { epochs } = (await (await stage.fetch(`/sessions/${id}/epochs`)).json()) as { epochs: { until: number }[] };
  const paths = Object.entries<Operation>(operations)
    .filter(([name, { access, method }]) => access === "read" && method === "get" && name !== "followEvents")
    .map(([, { path }]) => path.replace(":id", id));
  expect(paths.length).toBeGreaterThan(6);
  const all = [...paths, ...epochs.map(({ until }) => `/sessions/${id}/transcript?until=${until}`)];
  const answers = all.map(async (path) => {
    const answer = await stage.fetch(path, { token });
    expect(answer.status, path).toBe(200);
    return `${path} ${await answer.text()}\n`;
  });
  return (await Promise.all(answers)).join("");
}

test("a link that redacts shows no part of a credential: live, afterwards, and of what was replaced", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 1 } });
  const id = await stage.session();
  const chat = await stage.host.open(id);
  const share = (body: { redact?: boolean }) => stage.client.call("createShare", { params: { id }, body });
  const [plain, redacted] = [await share({}), await share({ redact: true })];
  expect([plain.redact, redacted.redact]).toEqual([undefined, true]);
  const clientOf = (token: string) => new HoldfastClient({ url: stage.server.url, token });
  const leaving = new AbortController();
  const [open, closed] = [plain, redacted].map(({ token }) => follow(clientOf(token!), id, leaving.signal)) as [
    ReturnType<typeof follow>,
    ReturnType<typeof follow>,
  ];
  await expect.poll(() => stage.server.streams.count, PATIENT).toBe(2);
  // The title ends in the middle of it.
  await chat.prompt(`write ${"notes-".repeat(9)}.md: the key is ${TOKEN} and more ${TOKEN}`);
  await expect.poll(() => chat.state.asks.length, PATIENT).toBe(1);
  await stage.client.call("answerPermission", {
    params: { id },
    body: { call: chat.state.asks[0]!.call, answer: "allow" },
  });
  while (chat.state.status !== "idle") await chat.settled();
  await chat.prompt(`run: echo ${TOKEN}; sleep 0.1; echo ${TOKEN}`);
  await expect.poll(() => chat.state.asks.length, PATIENT).toBe(1);
  const waiting = await readAll(stage, redacted.token!, id);
  await chat.answer(chat.state.asks[0]!.call, "allow");
  while (chat.state.status !== "idle") await chat.settled();
  const before = await readAll(stage, redacted.token!, id);
  await chat.clear();
  await chat.prompt(`what is ${TOKEN}?`);
  while (chat.state.status !== "idle") await chat.settled();
  const after = await readAll(stage, redacted.token!, id);
  // As another server asks for a reader of its own.
  const forwarded = { "holdfast-forwarded": "redacted" };
  const passedOn = await (await stage.fetch(`/sessions/${id}/transcript`, { headers: forwarded })).text();
  await stage.client.call("closeSession", { params: { id } });
  await expect.poll(() => [open, closed].every(({ names }) => names.has("closed")), PATIENT).toBe(true);
  const inJournal = await readAll(stage, redacted.token!, id);
  leaving.abort();

  for (const [what, text] of Object.entries({ live: closed.text, waiting, before, after, passedOn, inJournal })) {
    expect(partsIn(text), what).toEqual([]);
    expect(text, what).toContain("redacted");
  }
  // The other link shows it, so there was something to hide in each of these.
  expect(partsIn(open.text)).toEqual(PARTS);
  expect(partsIn(await readAll(stage, plain.token!, id))).toEqual(PARTS);
  // What it shows live is the same otherwise.
  expect([...closed.names].sort()).toEqual([...open.names].sort());
  expect(closed.text).toMatch(/"channel":"(?:text|input)"/);
});

test("a link that redacts shows no part of a credential that a draft, a title or a timeline cuts in two", async () => {
  await using stage = await ServerStage.start();
  await using other = await openStore(stage.folder);
  const cut = `ghp_${RANDOM.slice(0, 20)}`;
  const session = await other.create({ dialect: "anthropic", title: `deploy with ${cut}` });
  const { id } = session;
  const { token } = await stage.client.call("createShare", { params: { id }, body: { redact: true } });
  const leaving = new AbortController();
  const heard = follow(new HoldfastClient({ url: stage.server.url, token: token! }), id, leaving.signal);
  // A timeline shows the first 200 characters of it.
  const turn = await session.startTurn({ role: "user", content: `${"deploy ".repeat(26)}${TOKEN}` });
  const { draft } = turn.request();
  for (const text of ["The key is ", cut, TOKEN.slice(cut.length), " as you said"]) {
    draft.push({ text });
    await session.flush();
  }
  await expect.poll(() => heard.text.match(/"kind":"draft"/g)?.length, PATIENT).toBe(4);
  const running = await readAll(stage, token!, id);
  await draft.commit({ role: "assistant", content: `The key is ${TOKEN} as you said` });
  await turn.end();
  // Cut off in the middle of it.
  const second = await session.startTurn({ role: "user", content: "again" });
  const { draft: unfinished } = second.request();
  unfinished.push({ text: `The key is ${cut}` });
  await session.flush();
  await session.close();
  await expect.poll(() => heard.text, PATIENT).toContain('"kind":"closed"');
  const interrupted = await readAll(stage, token!, id);
  leaving.abort();
  for (const [what, text] of Object.entries({ live: heard.text, running, interrupted })) {
    expect(partsIn(text), what).toEqual([]);
    expect(text, what).toContain("deploy");
  }
  expect(partsIn(await readAll(stage, stage.token, id))).toEqual(PARTS);
});
