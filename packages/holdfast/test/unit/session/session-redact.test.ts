import { Buffer } from "node:buffer";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type AiSdkMessage, openStore, type Session, type Store } from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { endsNow, type Guarded } from "../../../src/session/guarded.ts";
import { place } from "../../place.ts";
import { calls, type M, says, user } from "./session-failures-life.ts";

/** Put together here, so that no scanner takes this file for a leak. */
const SECRET = `ghp_${"Ab3dEf7hIj".repeat(4).slice(0, 36)}`;
const HIDDEN = `before ${SECRET} after`;

const opened: Disposable[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

function somewhere(): string {
  const here = place();
  opened.push(here);
  return here.path;
}

/** The files that hold the secret, by their paths. */
function leaksIn(root: string): string[] {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(root, name)).isFile(),
  );
  return names.filter((name) => readFileSync(join(root, name)).includes(Buffer.from(SECRET)));
}

async function busy(store: Store): Promise<Session<M>> {
  const session = await store.create<M>({
    dialect: "anthropic",
    title: HIDDEN,
    labels: { key: HIDDEN },
    draftMs: 1,
  });
  await session.rename(`again ${HIDDEN}`);
  await session.note("plan", { token: SECRET, list: [HIDDEN] });
  const queued = await session.enqueue(user(HIDDEN), { metadata: { why: HIDDEN } });
  const turn = await session.startTurn(queued, { id: "p" });
  await session.patch("p", { more: { why: HIDDEN } });
  const { draft: first } = turn.request();
  for (const piece of ["a key: ", SECRET.slice(0, 9), SECRET.slice(9), " and so on"]) first.push({ text: piece });
  await session.flush();
  await first.discard(HIDDEN);
  const { draft } = turn.request();
  draft.push({ text: HIDDEN });
  await draft.commit([says(HIDDEN), calls("a", "b", "c", "d")], { metadata: { why: HIDDEN } });
  await turn.tool("a", () => ({ out: HIDDEN }), { input: { given: HIDDEN } });
  await turn.tool("b", () => {
    throw new Error(HIDDEN);
  });
  await turn.toolStarted("c", { name: "work", input: HIDDEN });
  const shown = { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: HIDDEN }] };
  await turn.toolEnded("c", { value: HIDDEN }, shown as never);
  await turn.suspend({ reason: HIDDEN });
  const resumed = await session.resumeTurn({ calls: () => ({ error: new Error(HIDDEN) }) });
  await resumed.append(says("well"), { id: "w" });
  await resumed.append(user("go on"), { id: "g" });
  await session.edit(["g"], [user(HIDDEN)], { reason: HIDDEN, now: true });
  await resumed.abort({ by: HIDDEN, reason: HIDDEN });
  await session.replace([user(HIDDEN), ...session.entries.slice(-2)], { reason: "compaction" });
  const failing = await session.startTurn(user("next"));
  failing.request().draft.push({ text: HIDDEN });
  (session as unknown as Guarded)[endsNow]({ signal: "uncaughtException", error: HIDDEN });
  await failing.fail(new Error(HIDDEN));
  const last = await session.startTurn(user(`a needle ${HIDDEN}`));
  await last.append(says("done"));
  await last.end();
  return session;
}

describe.each([
  ["folder", (path: string) => path],
  ["sqlite", (path: string) => `sqlite:${path}/store.db`],
])("in the %s store", (_, url) => {
  test("with redaction no secret reaches the disk, whatever way it takes", async () => {
    const path = somewhere();
    const store = await openStore(url(path), { redact: "credentials", recordsToolStarts: true });
    const session = await busy(store);
    expect(JSON.stringify(session.entries)).toContain("[redacted:github]");
    const forked = await store.fork<M>(session.id, { title: `a fork ${HIDDEN}` });
    expect(forked.attributes.title).toContain("[redacted:github]");
    const hits = await Array.fromAsync(store.search("needle"));
    expect(hits.length).toBeGreaterThan(0);
    expect(leaksIn(path)).toEqual([]);
    await store.close();
    expect(leaksIn(path)).toEqual([]);
  });
});

test("the same without redaction is found: this test can fail", async () => {
  const path = somewhere();
  const store = await openStore(path, { recordsToolStarts: true });
  await busy(store);
  await store.close();
  expect(leaksIn(path)).not.toEqual([]);
});

test("what was redacted is marked, errors of tools too", async () => {
  const store = await openStore("memory:", { redact: "credentials", recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user(HIDDEN), { id: "p" });
  await turn.append(calls("a", "b"), { id: "m" });
  await turn.tool("a", () => HIDDEN);
  await turn.tool("b", () => Promise.reject(new Error(HIDDEN)));
  await session.flush();
  const marked: string[] = [];
  const controller = new AbortController();
  for await (const record of session.follow({ signal: controller.signal })) {
    if (record["redacted"] === true) marked.push(record.kind);
    if (marked.length === 3) controller.abort();
  }
  expect(marked).toEqual(["message", "tool.ended", "tool.ended"]);
  await store.close();
});

describe("R15 with redaction: what was recorded is compared, not what was given", () => {
  test("the same prompt, message, draft and queued prompt once more is no other", async () => {
    const path = somewhere();
    const store = await openStore(path, { redact: "credentials", recordsToolStarts: true });
    const session = await store.create<M>({ dialect: "anthropic" });
    const queued = await session.enqueue(user(HIDDEN), { id: "q" });
    expect(await session.enqueue(user(HIDDEN), { id: "q" })).toEqual(queued);
    await expect(session.enqueue(user("other"), { id: "q" })).rejects.toMatchObject({ code: "MESSAGE_ID_TAKEN" });
    const turn = await session.startTurn(queued);
    expect(await session.startTurn(queued), "delivered already").toBe(turn);
    expect(await session.startTurn(user(HIDDEN), { id: "q" })).toBe(turn);
    await expect(session.enqueue(user("other"), { id: "q" })).rejects.toMatchObject({ code: "MESSAGE_ID_TAKEN" });
    expect(await session.enqueue(user(HIDDEN), { id: "q" })).toMatchObject({ id: "q" });
    const two = [says(HIDDEN), says("more")];
    const appended = await turn.append(two, { id: "x", usage: { outputTokens: 1 } });
    expect(await turn.append(two, { id: "x", usage: { outputTokens: 1 } })).toEqual(appended);
    const { draft } = turn.request();
    draft.push({ text: "wor" });
    const committed = await draft.commit(says(HIDDEN));
    expect(await draft.commit(says(HIDDEN)), "a retry").toEqual(committed);
    await expect(draft.commit(says("other"))).rejects.toMatchObject({ code: "MESSAGE_ID_TAKEN" });
    expect(session.queue).toEqual([]);
    expect(session.entries).toHaveLength(4);
    expect(session.usage).toEqual({ outputTokens: 1 });
    await store.close();

    await using again = await openStore(path, { redact: "credentials", recordsToolStarts: true });
    const resumed = await again.resume<M>(session.id);
    const resumedTurn = await resumed.startTurn(user(HIDDEN), { id: "q" });
    expect(resumedTurn.number, "the interrupted turn goes on").toBe(1);
    expect(await resumedTurn.append(two, { id: "x" })).toMatchObject({ ids: ["x", "x.1"] });
    expect(resumed.entries.filter(({ synthetic }) => synthetic === undefined)).toHaveLength(4);
  });

  test("bytes and URLs too, which are stored in another form (R19)", async () => {
    const path = somewhere();
    const message = (): AiSdkMessage =>
      ({
        role: "user",
        content: [
          { type: "text", text: HIDDEN },
          { type: "image", image: new Uint8Array([1, 2, 3]) },
          { type: "file", data: new URL("https://example.org/a.png"), mediaType: "image/png" },
        ],
      }) as never;
    const store = await openStore(path, { redact: "credentials", recordsToolStarts: true });
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    await session.enqueue(message(), { id: "q" });
    await session.enqueue(message(), { id: "q" });
    const turn = await session.startTurn(message(), { id: "p" });
    expect(await session.startTurn(message(), { id: "p" })).toBe(turn);
    await turn.append(message(), { id: "m" });
    await turn.append(message(), { id: "m" });
    await store.close();
    await using again = await openStore(path, { redact: "credentials", recordsToolStarts: true });
    const resumed = await again.resume<AiSdkMessage>(session.id);
    await resumed.enqueue(message(), { id: "q" });
    const next = await resumed.startTurn(message(), { id: "p" });
    await next.append(message(), { id: "m" });
    expect(resumed.entries.map(({ id }) => id)).toEqual(["p", "m"]);
    expect(resumed.queue).toHaveLength(1);
    const [, image] = (resumed.entries[0]!.message as unknown as { content: { image?: unknown }[] }).content;
    expect(image!.image).toEqual(new Uint8Array([1, 2, 3]));
  });
});
