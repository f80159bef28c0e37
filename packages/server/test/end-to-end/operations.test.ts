import { cpSync, globSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { dialects, openStore } from "holdfast";
import { expect, test } from "vitest";
import { clientProof, digestOf } from "../../src/proof/proof.ts";
import type { Operation } from "../../src/schemas/operation.ts";
import { type OperationId, operations } from "../../src/schemas/operations.ts";
import type { ProblemStatus } from "../../src/schemas/problem.ts";
import { type ProbeInput, Prober } from "../probe.ts";
import { ServerStage } from "../server-stage.ts";

const MISSING = "00000000-0000-7000-8000-000000000000";
const BODY_MAX = 4096;

/** A valid request, except for the session. */
const INPUTS: Partial<Record<OperationId, Omit<ProbeInput, "params"> & { readonly params?: object }>> = {
  proveServer: { query: { nonce: "n".repeat(43), client: "wrong" } },
  exchangeToken: { body: { token: "wrong" } },
  createSession: { body: { cwd: "/" } },
  searchSessions: { query: { q: "word" } },
  getUnfinished: { query: { cwd: "/" } },
  getPrompts: { query: { cwd: "/" } },
  openLatest: { body: { cwd: "/" } },
  changeSession: { body: { title: "new" } },
  forkSession: { body: {} },
  openSession: { body: {} },
  startTurn: { body: { text: "hello" } },
  finishTurn: { body: {} },
  withdrawPrompt: { params: { item: "x" } },
  answerPermission: { body: { call: "x", answer: "allow" } },
  rewind: { body: { message: "x" } },
  createShare: { body: {} },
  removeShare: { params: { share: "x" } },
};

function inputFor(id: OperationId, session: string): ProbeInput {
  const { params, ...rest } = INPUTS[id] ?? {};
  return { ...rest, params: { id: session, ...params } };
}

/** recorder.test.ts has those of the recorder. */
const isJudged = ({ tag }: Operation): boolean => tag !== "recorder";
const every = (Object.entries<Operation>(operations) as [OperationId, Operation][]).filter(([, one]) => isJudged(one));
const hasId = (operation: Operation): boolean => operation.path.includes(":id");
const takes = (operation: Operation, status: ProblemStatus): boolean => operation.problems.includes(status);

/** `fetch` does not send another Host header. */
function statusWithHost(stage: ServerStage, id: OperationId, session: string): Promise<Response> {
  const { method, path } = operations[id] as Operation;
  return new Promise((resolve, reject) => {
    const { port } = stage.server;
    const filled = path.replaceAll(":id", session).replaceAll(/:\w+/g, "x");
    request({ port, method: method.toUpperCase(), path: filled, headers: { host: "evil.example" } }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("end", () => {
        const headers = { "content-type": answer.headers["content-type"] ?? "" };
        resolve(new Response(Buffer.concat(pieces), { status: answer.statusCode!, headers }));
      });
    })
      .on("error", reject)
      .end();
  });
}

test("every operation answers with every status that it documents, in the documented form", async () => {
  const prober = new Prober();
  await using stage = await ServerStage.start({ limits: { bodyBytes: BODY_MAX, streams: 1 } });
  const { client } = stage;
  const send = (id: OperationId, input?: ProbeInput) => prober.send(stage, id, input);

  // What every operation refuses.
  const id = await stage.session({ title: "first" });
  const { token: readOnly } = await client.call("createShare", { params: { id }, body: {} });
  for (const [name, operation] of every) {
    const input = inputFor(name, id);
    if (operation.access !== "open") {
      expect(await send(name, { ...input, token: null })).toMatchObject({ status: 401, code: "TOKEN_MISSING" });
      expect(await send(name, { ...input, token: "wrong" })).toMatchObject({ status: 401, code: "TOKEN_MISSING" });
    }
    const origin = { origin: "https://evil.example" };
    expect(await send(name, { ...input, headers: origin })).toMatchObject({ status: 403, code: "ORIGIN_REFUSED" });
    await prober.check(name, await statusWithHost(stage, name, id));
    if (operation.access === "owner")
      expect(await send(name, { ...input, token: readOnly! })).toMatchObject({ status: 403, code: "TOKEN_READ_ONLY" });
    else if (hasId(operation))
      expect(await send(name, { ...inputFor(name, MISSING), token: readOnly! })).toMatchObject({ status: 403 });
    if (operation.body) {
      const large = JSON.stringify({ text: "x".repeat(BODY_MAX) });
      expect(await send(name, { ...input, body: large })).toMatchObject({ status: 413, code: "BODY_TOO_LARGE" });
      const plain = { ...input, body: "{}", headers: { "content-type": "text/plain" } };
      expect(await send(name, plain)).toMatchObject({ status: 415, code: "BODY_NOT_JSON" });
      expect(await send(name, { ...input, body: "{" })).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
      expect(await send(name, { ...input, body: { nonsense: 1 } })).toMatchObject({ status: 400 });
    }
    if (operation.query)
      expect(await send(name, { ...input, query: { nonsense: "1" } })).toMatchObject({ status: 400 });
    if (hasId(operation)) expect(await send(name, { ...input, params: { id: "x" } })).toMatchObject({ status: 400 });
    if (takes(operation, 404)) expect(await send(name, inputFor(name, MISSING))).toMatchObject({ status: 404 });
  }
  expect(await send("exchangeToken", { body: { token: "wrong" } })).toMatchObject({ status: 401 });
  expect(await send("proveServer", inputFor("proveServer", ""))).toMatchObject({ status: 401 });

  // A session in a format that this server does not know.
  await using other = await openStore(stage.folder);
  const foreign = await other.create({ dialect: { ...dialects.anthropic, name: "foreign" } as never });
  await foreign.close();
  for (const [name, operation] of every) {
    if (!takes(operation, 422) || !hasId(operation)) continue;
    expect(await send(name, inputFor(name, foreign.id))).toMatchObject({ status: 422, code: "DIALECT_UNKNOWN" });
  }
  expect(await send("createSession", { body: { cwd: stage.work, model: "nobody/x" } })).toMatchObject({ status: 422 });
  // A session that another process has open.
  const cwd = stage.work;
  const held = await other.create({ dialect: "ai-sdk", cwd, app: "holdfast" });
  const turn = await held.startTurn({ role: "user", content: "hello" });
  for (const [name, operation] of every) {
    if (!takes(operation, 409) || !hasId(operation) || name === "closeSession" || name === "restoreSession") continue;
    expect(await send(name, inputFor(name, held.id))).toMatchObject({ status: 409, code: "SESSION_BUSY" });
  }
  expect(await send("openLatest", { body: { cwd } })).toMatchObject({ status: 409, code: "SESSION_BUSY" });
  expect(await send("getSession", { params: { id: held.id } })).toMatchObject({ body: { status: "running" } });
  await turn.end();
  await held.close();
  expect(await send("openLatest", { body: { cwd, model: "nobody/x" } })).toMatchObject({ status: 422 });

  // What works.
  await send("getServer");
  await send("getServer", { token: readOnly! });
  await send("getOpenApi", { token: null });
  const nonce = "n".repeat(43);
  const proof = { nonce, client: clientProof(digestOf(stage.token), nonce) };
  expect(await send("proveServer", { query: proof, token: null })).toMatchObject({ status: 204 });
  const cookie = await send("exchangeToken", { body: { token: stage.token }, token: null });
  expect(cookie.headers.get("set-cookie")).toMatch(/^holdfast-\d+=owner\.[\w-]+; Path=\/; HttpOnly; SameSite=Strict$/);
  await send("forgetCookie");
  expect(await send("openLatest", { body: { cwd } })).toMatchObject({ status: 200 });
  await send("createSession", { body: { cwd, title: "second", labels: { team: "a" }, finishAfterRestart: true } });
  const chat = await stage.host.open(id);
  expect(await send("startTurn", { params: { id }, body: { text: "write notes.md: one" } })).toMatchObject({
    status: 202,
    body: { outcome: "started" },
  });
  while (chat.state.asks.length === 0) await chat.settled();
  await send("startTurn", { params: { id }, body: { text: "later" } });
  expect(await send("getQueue", { params: { id } })).toMatchObject({ body: { queue: [{ text: "later" }] } });
  expect(await send("closeSession", { params: { id } })).toMatchObject({ status: 409, code: "TURN_OPEN" });
  const [ask] = chat.state.asks;
  expect(await send("getPermissions", { params: { id } })).toMatchObject({ body: { asks: [{ call: ask!.call }] } });
  const answer = { call: ask!.call, answer: "allow" };
  const stale = { ...answer, digest: "of another question" };
  expect(await send("answerPermission", { params: { id }, body: stale })).toMatchObject({ status: 409 });
  expect(await send("answerPermission", { params: { id }, body: { ...answer, digest: ask!.digest } })).toMatchObject({
    status: 204,
  });
  expect(await send("answerPermission", { params: { id }, body: answer })).toMatchObject({
    status: 409,
    code: "ALREADY_ANSWERED",
    body: { facts: { allowed: true, by: "user" } },
  });
  while (chat.state.status !== "idle" || chat.state.queue.length > 0) await chat.settled();
  expect(readFileSync(join(stage.work, "notes.md"), "utf8")).toContain("one");

  for (const name of ["getSession", "getTimeline", "getChanges", "getUsage", "getTree", "exportSession"] as const)
    expect(await send(name, { params: { id } })).toMatchObject({ status: 200 });
  expect(await send("getChanges", { params: { id } })).toMatchObject({ body: { files: [{ path: "notes.md" }] } });
  const { cursor } = (await send("getTranscript", { params: { id } })).body as { cursor: string };
  expect(await send("getTranscript", { params: { id }, query: { since: cursor } })).toMatchObject({ status: 200 });
  expect(await send("getTranscript", { params: { id }, query: { last: "1" } })).toMatchObject({ status: 200 });
  expect(await send("getTranscript", { params: { id }, query: { since: "2-00000000" } })).toMatchObject({
    status: 410,
    code: "CURSOR_STALE",
  });
  const { items } = (await send("getTranscript", { params: { id } })).body as { items: { id: string }[] };
  const around = items[1]!.id;
  expect(await send("getTranscript", { params: { id }, query: { around, limit: "1" } })).toMatchObject({
    body: { found: 1, from: 1, items: [{ id: around }] },
  });
  expect(await send("getTranscript", { params: { id }, query: { from: "1", last: "1" } })).toMatchObject({
    status: 400,
    code: "REQUEST_INVALID",
  });
  expect(await send("getTranscript", { params: { id }, query: { until: "3" } })).toMatchObject({
    status: 404,
    code: "EPOCH_UNKNOWN",
  });
  expect(await send("getEpochs", { params: { id } })).toMatchObject({ body: { epochs: [] } });
  await send("changeSession", { params: { id }, body: { title: "renamed", mode: "plan", model: "offline" } });
  expect(await send("listSessions", { query: { status: "idle" } })).toMatchObject({ status: 200 });
  expect(await send("searchSessions", { query: { q: "notes" } })).toMatchObject({ status: 200 });
  await send("getUnfinished", { query: { cwd } });
  await send("getPrompts", { query: { cwd } });
  await send("stopTurn", { params: { id } });
  await send("leaveTurn", { params: { id } });
  await send("resumeQueue", { params: { id } });
  await send("compact", { params: { id } });
  await send("undo", { params: { id } });
  const prompt = chat.state.items.find(({ kind }) => kind === "prompt")!;
  expect(await send("forkSession", { params: { id }, body: { at: prompt.id } })).toMatchObject({ status: 201 });
  expect(await send("rewind", { params: { id }, body: { message: prompt.id } })).toMatchObject({ status: 200 });
  await send("clear", { params: { id } });
  const { epochs } = (await send("getEpochs", { params: { id } })).body as {
    epochs: { until: number; reason: string }[];
  };
  expect(epochs.map(({ reason }) => reason)).toContain("clear");
  expect(await send("getTranscript", { params: { id }, query: { until: String(epochs[0]!.until) } })).toMatchObject({
    body: {
      cursor: null,
      count: items.length,
      items: items.map((item) => ({ id: item.id, aside: expect.any(String) })),
    },
  });
  await send("getDamage", { params: { id } });
  const share = (await send("createShare", { params: { id }, body: { expiresAt: "2999-01-01T00:00:00Z" } })).body as {
    id: string;
  };
  await send("listShares", { params: { id } });
  expect(await send("listAllShares")).toMatchObject({
    status: 200,
    body: { shares: [{ session: id }, { id: share.id }] },
  });
  expect(await send("removeShare", { params: { id, share: share.id } })).toMatchObject({ status: 204 });

  // A queued prompt is withdrawn; an interrupted turn is finished.
  const second = await stage.host.open((await client.call("createSession", { body: { cwd } })).id);
  await second.prompt("write more.md: two");
  while (second.state.asks.length === 0) await second.settled();
  await second.prompt("never");
  const [queued] = second.state.queue;
  await send("withdrawPrompt", { params: { id: second.id, item: queued!.id } });
  await second.stop();
  await second.settled();
  await send("openSession", { params: { id: second.id }, body: {} });
  await send("finishTurn", { params: { id: second.id }, body: {} });
  await second.stop();

  // The trash.
  const gone = await stage.session();
  await send("closeSession", { params: { id: gone } });
  const [folder] = globSync(`**/${gone}`, { cwd: stage.folder });
  expect(await send("healSession", { params: { id: gone } })).toMatchObject({ status: 200 });
  const copy = join(stage.work, "copy");
  cpSync(join(stage.folder, folder!), copy, { recursive: true });
  expect(await send("deleteSession", { params: { id: gone } })).toMatchObject({ status: 204 });
  expect(await send("listTrash")).toMatchObject({ body: { sessions: [{ id: gone }] } });
  cpSync(copy, join(stage.folder, folder!), { recursive: true });
  expect(await send("restoreSession", { params: { id: gone } })).toMatchObject({ status: 409, code: "SESSION_EXISTS" });
  await send("deleteSession", { params: { id: gone } });
  expect(await send("restoreSession", { params: { id: gone } })).toMatchObject({ status: 204 });

  // Streams.
  const first = await stage.fetch(`/sessions/${id}/events`);
  expect(await send("followEvents", { params: { id } })).toMatchObject({ status: 503, code: "TOO_MANY_STREAMS" });
  await prober.check("followEvents", first);

  // A server that is stopping, while a turn runs.
  const last = await stage.host.open(await stage.session());
  await last.prompt("write last.md: three");
  while (last.state.asks.length === 0) await last.settled();
  const third = await other.create({ dialect: "ai-sdk", cwd, app: "holdfast" });
  await third.startTurn({ role: "user", content: "hello" });
  await third.close();
  const isStopped = Promise.withResolvers<void>();
  const handOver = stage.host.handOver.bind(stage.host);
  stage.host.handOver = async (...given) => {
    await isStopped.promise;
    return handOver(...given);
  };
  const stopping = stage.server.stop(60_000);
  await expect.poll(() => stage.server.hosting.isStopping).toBe(true);
  for (const [name, operation] of every) {
    if (!takes(operation, 503) || name === "followEvents") continue;
    expect(await send(name, inputFor(name, third.id)), name).toMatchObject({ status: 503, code: "SERVER_STOPPING" });
  }
  isStopped.resolve();
  await stopping;
  expect(prober.compare(isJudged)).toEqual({ missing: [], undocumented: [] });
});
