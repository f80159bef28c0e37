import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import type { RequestLine } from "../../src/http/app.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** Sends bytes as they are; returns the answer once the server has closed the connection, or `until` is in it. */
function raw(port: number, bytes: string | Buffer, until = /\r\n\r\n/): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let got = "";
    const done = (): void => {
      socket.destroy();
      resolve(got);
    };
    socket.on("data", (data) => {
      got += data.toString("latin1");
      if (until.test(got)) done();
    });
    socket.on("error", done);
    socket.on("close", done);
    socket.write(bytes);
  });
}

test("whatever is sent, the answer is a problem document, and nothing counts as a fault of the server", async () => {
  const lines: RequestLine[] = [];
  await using stage = await ServerStage.start({ log: (line) => lines.push(line) });
  const { port } = stage.server;
  const id = await stage.session();
  const own = `Host: 127.0.0.1\r\nAuthorization: Bearer ${stage.token}\r\n`;
  const json = `${own}Content-Type: application/json\r\n`;
  const requests: readonly (readonly [bytes: string, status: number, code: string])[] = [
    ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "REQUEST_INVALID"],
    ["GET /server HTTP/1.1\r\n\r\n", 400, "REQUEST_INVALID"],
    [`OPTIONS * HTTP/1.1\r\n${own}\r\n`, 400, "REQUEST_INVALID"],
    [`GET /server HTTP/1.1\r\n${own}X: ${"x".repeat(20_000)}\r\n\r\n`, 431, "HEADERS_TOO_LARGE"],
    [`GET /server HTTP/1.1\r\n${own}Host: evil.example\r\n\r\n`, 421, "HOST_REFUSED"],
    [`GET //evil.example/server HTTP/1.1\r\n${own}\r\n`, 404, "NO_SUCH_PATH"],
    [`GET /sessions/%zz HTTP/1.1\r\n${own}\r\n`, 400, "REQUEST_INVALID"],
    [`GET /sessions/${id}%00 HTTP/1.1\r\n${own}\r\n`, 400, "REQUEST_INVALID"],
    [`GET /sessions/${id}%2Fevents HTTP/1.1\r\n${own}\r\n`, 400, "REQUEST_INVALID"],
    [`TRACE /server HTTP/1.1\r\n${own}\r\n`, 405, "METHOD_REFUSED"],
    [
      `POST /sessions HTTP/1.1\r\n${json}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      "REQUEST_INVALID",
    ],
    [
      `POST /sessions HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`,
      400,
      "REQUEST_INVALID",
    ],
  ];
  for (const [bytes, status, code] of requests) {
    const answer = await raw(port, Buffer.from(bytes, "latin1"), /"detail"/);
    expect(answer, bytes.slice(0, 60)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer.toLowerCase()).toContain("content-type: application/problem+json");
    expect(answer, bytes.slice(0, 60)).toContain(`"code":"${code}"`);
  }
  // Cut off in the middle of the body.
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`POST /sessions HTTP/1.1\r\n${json}Content-Length: 500\r\n\r\n{"cwd":`);
  await expect.poll(() => stage.server.hosting.running, PATIENT).toBe(0);
  const before = lines.length;
  socket.resetAndDestroy();
  await expect.poll(() => lines.length, PATIENT).toBeGreaterThan(before);
  expect(lines.filter(({ error }) => error !== undefined)).toEqual([]);
});

test("bodies in other encodings are refused, not recorded with other characters in them", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  const post = async (body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}): Promise<string> => {
    const all = { "content-type": "application/json", ...headers };
    const answer = await stage.fetch(`/sessions/${id}/turns`, { method: "POST", headers: all, body });
    return answer.status === 202 ? "202" : ((await answer.json()) as { code: string }).code;
  };
  const latin1 = Buffer.from('{"text":"\u00e9t\u00e9"}', "latin1") as Buffer<ArrayBuffer>;
  expect(await post(latin1)).toBe("REQUEST_INVALID");
  expect(await post(latin1, { "content-type": "application/json; charset=latin1" })).toBe("BODY_NOT_JSON");
  expect(await post(Buffer.from('{"text":"x"}', "utf16le") as Buffer<ArrayBuffer>)).toBe("REQUEST_INVALID");
  expect(await post("{}", { "content-encoding": "gzip" })).toBe("BODY_NOT_JSON");
  expect(await post('{"text":"hi"', {})).toBe("REQUEST_INVALID");
  expect(await post('\ufeff{"text":"\u00e9t\u00e9"}', { "content-type": 'application/json; charset="UTF-8"' })).toBe(
    "202",
  );
  const deep = `{"dialect":"anthropic","key":"k","parent":{"session":"s"},"labels":${"[".repeat(9999)}${"]".repeat(9999)}}`;
  const json = { "content-type": "application/json" };
  expect((await stage.fetch("/recordings", { method: "POST", headers: json, body: deep })).status).toBe(400);
  const made = await stage.fetch("/recordings", { method: "POST", headers: json, body: '{"dialect":"anthropic"}' });
  const { session, recorder } = (await made.json()) as { session: string; recorder: string };
  for (const depth of [900, 3000, 100_000]) {
    const value = `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const body = `{"recorder":"${recorder}","key":"k${depth}","record":{"type":"note","name":"n","value":${value}}}`;
    const { status } = await stage.fetch(`/sessions/${session}/records`, { method: "POST", headers: json, body });
    expect(depth < 1000 ? [200] : [400, 422], String(depth)).toContain(status);
  }
  const key = await stage.fetch("/recordings", {
    method: "POST",
    headers: json,
    body: '{"dialect":"anthropic","key":"\\ud800"}',
  });
  expect(key.status).toBe(400);
});

test("a body is not read before its sender is known", async () => {
  await using stage = await ServerStage.start({ limits: { bodyBytes: 8 * 1024 * 1024 } });
  // Announces nothing, sends a little, and waits: an answer can come only from somebody who does not want the rest.
  const start = (token: string, path = "/sessions"): string =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cwd\r\n`;
  const { port } = stage.server;
  expect(await raw(port, start("wrong"), /"code"/)).toContain("TOKEN_MISSING");
  const { token } = await stage.client.call("createShare", { params: { id: await stage.session() }, body: {} });
  expect(await raw(port, start(token!), /"code"/)).toContain("TOKEN_READ_ONLY");
  const chunk = `1000\r\n${"x".repeat(0x1000)}\r\n`;
  expect(await raw(port, start("wrong", "/auth/cookie") + chunk + chunk, /"code"/)).toContain("BODY_TOO_LARGE");
});

test("connections that send slowly, or nothing, are closed; others are served meanwhile", async () => {
  const limits = { headersMs: 1000, requestMs: 2000, connections: 30 };
  await using stage = await ServerStage.start({ limits });
  const { port } = stage.server;
  const ended: Promise<unknown>[] = [];
  for (let n = 0; n < 24; n++) {
    const socket = connect(port, "127.0.0.1").resume();
    socket.on("error", () => {});
    ended.push(once(socket, "close"));
    await once(socket, "connect");
    if (n % 2 === 0) socket.write("GET /server HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
  }
  expect((await stage.fetch("/server")).status).toBe(200);
  await Promise.all(ended);
  const answer = await raw(port, "GET /server HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", /"code"/);
  expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_TOO_SLOW"/);
  const body = `POST /auth/cookie HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
  expect(await raw(port, body, /never/)).toMatch(/^(?:HTTP\/1\.1 40[08] .*)?/);
});

test("a cookie of the same name from another port does not hide the right one", async () => {
  await using stage = await ServerStage.start();
  const { port, url } = stage.server;
  const answer = await stage.fetch("/auth/cookie", {
    method: "POST",
    token: null,
    headers: { "content-type": "application/json", origin: url },
    body: JSON.stringify({ token: stage.token }),
  });
  const right = answer.headers.get("set-cookie")!.split(";")[0]!;
  const status = async (cookie: string): Promise<number> =>
    (await stage.fetch("/sessions", { token: null, headers: { cookie } })).status;
  expect(await status(`holdfast-${port}=junk; ${right}`)).toBe(200);
  expect(await status(`${right}; holdfast-${port}=junk; x=y`)).toBe(200);
  expect(await status(`holdfast-${port}=junk; holdfast-${port}=`)).toBe(401);
  expect(await status(`xholdfast-${port}=${right.split("=")[1]}`)).toBe(401);
});

test("a turn that is accepted while the server is told to stop is recorded, and handed over", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 20 } });
  const ids = await Promise.all(Array.from({ length: 6 }, () => stage.session()));
  // Closed, so that they have to be opened first.
  for (const id of ids.slice(0, 3)) await stage.client.call("closeSession", { params: { id } });
  const { client, server, host } = stage;
  const asked = ids.map((id) =>
    client.call("startTurn", { params: { id }, body: { text: "tell me a story of 400 lines" } }).then(
      () => "started",
      (error: { code: string }) => error.code,
    ),
  );
  await new Promise((resolve) => setImmediate(resolve));
  await server.stop(0);
  const answers = await Promise.all(asked);
  for (const [at, id] of ids.entries()) {
    const { interruption } = await host.sessions.read(id);
    const how = interruption?.how ?? null;
    if (answers[at] === "started") expect(how, id).toEqual({ kind: "handed-over" });
    else expect(["SERVER_STOPPING", "SERVER_UNREACHABLE"]).toContain(answers[at]);
    // Never begun and then dropped, nor ended by anybody.
    if (how !== null) expect(how).toEqual({ kind: "handed-over" });
  }
});

test("a turn whose session is still being opened when the server is told to stop is not started", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  await stage.client.call("closeSession", { params: { id } });
  const { client, server, host } = stage;
  const [opening, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const open = host.open.bind(host);
  host.open = async (...args) => {
    opening.resolve();
    await gate.promise;
    return open(...args);
  };
  const asked = client.call("startTurn", { params: { id }, body: { text: "hello" } });
  const refused = expect(asked).rejects.toMatchObject({ code: "SERVER_STOPPING" });
  await opening.promise;
  const stopped = server.stop(5000);
  gate.resolve();
  await refused;
  await stopped;
  const records = await Array.fromAsync(host.sessions.history(id));
  expect(records.filter(({ kind }) => kind.startsWith("turn."))).toEqual([]);
});
