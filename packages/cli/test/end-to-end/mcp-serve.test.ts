import { once } from "node:events";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { bin, type Home, temporaryHome } from "../command.ts";
import { speakIn } from "../sessions.ts";

async function connected(transport: unknown): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport as Transport);
  return client;
}

async function call(client: Client, name: string, input: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: input });
  return (content as { text: string }[])[0]!.text;
}

function stdio(home: Home, args: readonly string[] = []): StdioClientTransport {
  const env = { ...home.env, PATH: process.env["PATH"]!, HOLDFAST_CONFIG: "" };
  return new StdioClientTransport({
    command: process.execPath,
    args: [bin, "mcp", "serve", ...args],
    env,
    cwd: home.work,
    stderr: "pipe",
  });
}

test("an agent looks up past sessions over standard input and output", async () => {
  using home = temporaryHome();
  const transport = stdio(home);
  const client = await connected(transport);
  // The client was configured before the first session: that is an answer, not a crash.
  expect(await call(client, "list_sessions")).toMatch(/code STORE_NOT_FOUND\. Nothing was changed\./);
  const [id] = await speakIn(home.store, { prompt: "where is the bug", answer: "in the parser" });
  expect(await call(client, "list_sessions")).toContain(`session ${id}`);
  expect(await call(client, "search_sessions", { query: "parser" })).toContain(id);
  expect(await call(client, "read_session", { session: "latest" })).toContain("  in the parser");
  const several = await Promise.all(Array.from({ length: 20 }, () => call(client, "read_session", { session: id })));
  expect(several.every((text) => text.includes("in the parser"))).toBe(true);
  // The store is free between calls.
  await using store = await openStore(home.store);
  await store.delete(id!);
  expect(await call(client, "list_sessions")).toContain("No such sessions");
  await client.close();
});

test("a session that cannot be read, and one that is being written, stop nothing", async () => {
  using home = temporaryHome();
  const [good, bad] = await speakIn(home.store, { prompt: "good words" }, { prompt: "bad words" });
  const segment = join(home.store, "sessions", bad!, "000001.jsonl");
  const [header, ...rest] = readFileSync(segment, "utf8").split("\n");
  const body = header!.replace('"format":"1.1"', '"format":"2.0"').replace(/,"crc":"[0-9a-f]{8}"}$/, "");
  writeFileSync(segment, [`${body},"crc":"${crc32(body).toString(16).padStart(8, "0")}"}`, ...rest].join("\n"));
  await using store = await openStore(home.store);
  await using writing = await store.create({ dialect: "ai-sdk" });
  await writing.startTurn({ role: "user", content: "words in flight" });
  const client = await connected(stdio(home));
  const listed = await call(client, "list_sessions");
  expect(listed).toContain(good);
  expect(listed).toContain("status: running");
  expect(await call(client, "read_session", { session: bad })).toContain("code FORMAT_NEWER");
  expect(await call(client, "search_sessions", { query: "words" })).toContain(good);
  expect(await call(client, "read_session", { session: good })).toContain("good words");
  expect(await call(client, "read_session", { session: writing.id })).toContain("it may grow");
  await client.close();
  // Its writer noticed nothing.
  await writing.turn!.end();
});

test("standard output has nothing but the protocol, and the last calls are answered after the input ends", async () => {
  using home = temporaryHome();
  await speakIn(home.store, { prompt: "hello" });
  const lines = [
    {
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
    },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/call", params: { name: "list_sessions", arguments: {} } },
    { id: 3, method: "tools/call", params: { name: "search_sessions", arguments: { query: "hello" } } },
    { id: 4, method: "no/such/method" },
  ].map((message) => JSON.stringify({ jsonrpc: "2.0", ...message }));
  const ended = await home.run(["mcp", "serve"], {
    input: [...lines.slice(0, 3), "not json", ...lines.slice(3), ""].join("\n"),
  });
  expect(ended).toMatchObject({ code: 0, signal: null });
  const answers = ended.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { jsonrpc: string; id: number });
  expect(answers.every(({ jsonrpc }) => jsonrpc === "2.0")).toBe(true);
  expect(new Set(answers.map(({ id }) => id))).toEqual(new Set([1, 2, 3, 4]));
  // Nobody reads what it says: it ends quietly.
  const silent = home.start(["mcp", "serve"]);
  silent.stdout.destroy();
  silent.stdin.on("error", () => undefined).write(`${lines.slice(0, 3).join("\n")}\n`);
  const [code] = (await once(silent, "exit")) as [number];
  expect(code).toBe(0);
});

test("a line of eleven megabytes ends the server, with a reason", async () => {
  using home = temporaryHome();
  const ended = await home.run(["mcp", "serve"], { input: "x".repeat(11 * 1024 * 1024) });
  expect(ended.stdout).toBe("");
  expect(ended.stderr).toContain("maximum size");
});

test("SIGKILL in the middle of calls: nothing is lost, and the next server answers", async () => {
  using home = temporaryHome();
  const ids = await speakIn(home.store, ...Array.from({ length: 20 }, (_, n) => ({ prompt: `prompt ${n}` })));
  for (let kill = 0; kill < 5; kill++) {
    const transport = stdio(home);
    const client = await connected(transport);
    const calls = ids.map((id) => call(client, "read_session", { session: id }).catch(() => "killed"));
    const search = call(client, "search_sessions", { query: "prompt" }).catch(() => "killed");
    if (kill > 0) await calls[kill];
    process.kill(transport.pid!, "SIGKILL");
    await Promise.all([...calls, search]);
    await client.close();
  }
  const client = await connected(stdio(home));
  const listed = await call(client, "list_sessions", { limit: 100 });
  for (const id of ids) expect(listed).toContain(id);
  expect(await call(client, "search_sessions", { query: "prompt", limit: 50 })).toContain("20 hits in 20 sessions");
  await client.close();
  expect((await home.run(["verify", "--all"])).code).toBe(0);
});

interface Served extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly tokenFile: string;
}

async function serveHttp(home: Home, args: readonly string[] = []): Promise<Served> {
  const child = home.start(["mcp", "serve", "--transport", "http", "--port", "0", ...args]);
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  const tokenFile = join(home.path, "state/holdfast/server/mcp-token");
  return {
    url: line.trim(),
    tokenFile,
    token: readFileSync(tokenFile, "utf8").trim(),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      expect(child.signalCode).toBe("SIGTERM");
    },
  };
}

test("the same over HTTP, with a token that only this user can read", async () => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "where is the bug", answer: "in the parser" });
  await using served = await serveHttp(home);
  expect(served.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  expect(statSync(served.tokenFile).mode & 0o777).toBe(0o600);
  const headers = { Authorization: `Bearer ${served.token}` };
  const client = await connected(new StreamableHTTPClientTransport(new URL(served.url), { requestInit: { headers } }));
  expect((await client.listTools()).tools).toHaveLength(4);
  expect(await call(client, "read_session", { session: id })).toContain("  in the parser");
  const several = await Promise.all(Array.from({ length: 10 }, () => call(client, "list_sessions")));
  expect(several.every((text) => text.includes(id!))).toBe(true);
  await client.close();
  // A second start uses the same token.
  await using again = await serveHttp(home);
  expect(again.token).toBe(served.token);
  const taken = await home.run(["mcp", "serve", "-t", "http", "--port", new URL(served.url).port]);
  expect(taken).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("[PORT_TAKEN]") });
});

test("requests without the token, from web pages, to other names and of unreasonable size are refused", async () => {
  using home = temporaryHome();
  await using served = await serveHttp(home);
  const { port } = new URL(served.url);
  const init = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const send = (over: {
    headers?: Record<string, string>;
    path?: string;
    method?: string;
    body?: string;
  }): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          path: over.path ?? "/mcp",
          method: over.method ?? "POST",
          headers: {
            authorization: `Bearer ${served.token}`,
            accept: "application/json, text/event-stream",
            "content-type": "application/json",
            ...over.headers,
          },
        },
        (response) => resolve(response.resume().statusCode!),
      );
      sent.on("error", reject);
      sent.end(over.method === "GET" ? undefined : (over.body ?? JSON.stringify(init)));
    });
  expect(await send({})).toBe(200);
  expect(await send({ headers: { authorization: "" } })).toBe(401);
  expect(await send({ headers: { authorization: `Bearer ${served.token}x` } })).toBe(401);
  expect(await send({ headers: { authorization: `Basic ${served.token}` } })).toBe(401);
  expect(await send({ headers: { authorization: "" }, path: `/mcp?token=${served.token}` })).toBe(401);
  expect(await send({ headers: { host: `evil.example:${port}` } })).toBe(421);
  expect(await send({ headers: { host: "127.0.0.1" } })).toBe(421);
  expect(await send({ headers: { host: `localhost:${port}` } })).toBe(200);
  expect(await send({ headers: { origin: `http://127.0.0.1:${port}` } })).toBe(403);
  expect(await send({ headers: { origin: "null" } })).toBe(403);
  expect(await send({ path: "/" })).toBe(404);
  expect(await send({ method: "GET" })).toBe(405);
  expect(await send({ method: "DELETE" })).toBe(405);
  expect(await send({ body: "x".repeat(300_000) }).catch(() => 413)).toBe(413);
  expect(await send({ body: "{" })).toBe(400);
  expect(await send({ headers: { "content-type": "text/plain" } })).toBe(415);
  expect(await send({})).toBe(200);
});

test("silent connections do not keep a client with the token out", async () => {
  using home = temporaryHome();
  await using served = await serveHttp(home);
  const sockets = Array.from({ length: 150 }, () => connect(Number(new URL(served.url).port), "127.0.0.1"));
  await Promise.all(
    sockets.map((socket) => new Promise((resolve) => socket.on("connect", resolve).on("error", resolve))),
  );
  const headers = { Authorization: `Bearer ${served.token}` };
  const client = await connected(new StreamableHTTPClientTransport(new URL(served.url), { requestInit: { headers } }));
  expect((await client.listTools()).tools).toHaveLength(4);
  await client.close();
  for (const socket of sockets) socket.destroy();
});

test("a token that others could have read is refused, and nothing starts", async () => {
  using home = temporaryHome();
  const { tokenFile } = await (async () => {
    await using served = await serveHttp(home);
    return served;
  })();
  const start = (env: Record<string, string> = {}) => home.run(["mcp", "serve", "-t", "http", "--port", "0"], { env });
  chmodSync(tokenFile, 0o644);
  expect(await start()).toMatchObject({
    code: 5,
    stdout: "",
    stderr: expect.stringContaining("can be read by other users"),
  });
  chmodSync(tokenFile, 0o600);
  writeFileSync(tokenFile, "short\n");
  expect(await start()).toMatchObject({ code: 5, stderr: expect.stringContaining("does not hold a token") });
  expect(await start({ HOLDFAST_MCP_TOKEN: "short" })).toMatchObject({ code: 2 });
});

test("wrong options are refused before anything starts", async () => {
  using home = temporaryHome();
  for (const args of [
    ["serve", "name"],
    ["serve", "--json"],
    ["serve", "--port", "1"],
    ["serve", "-t", "http", "--port", "70000"],
    ["serve", "-e", "A=b"],
    ["list", "--no-redact"],
    ["list", "--port", "1"],
    ["serve", "--store", "postgress://x"],
  ])
    expect(await home.run(["mcp", ...args]), args.join(" ")).toMatchObject({ code: 2, stdout: "" });
});
