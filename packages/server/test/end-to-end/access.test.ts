import { connect } from "node:net";
import { expect, test } from "vitest";
import { Credentials, newToken, sharesInMemory } from "../../src/access/credentials.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** The cookie that the page gets for a token. */
async function cookieFor(stage: ServerStage, token: string): Promise<string> {
  const answer = await stage.fetch("/auth/cookie", {
    method: "POST",
    token: null,
    headers: { "content-type": "application/json", origin: stage.server.url },
    body: JSON.stringify({ token }),
  });
  expect(answer.status).toBe(204);
  return answer.headers.get("set-cookie")!.split(";")[0]!;
}

test("the page's cookie opens what the token opens, does not reveal it, and survives a restart", async () => {
  await using stage = await ServerStage.start();
  const cookie = await cookieFor(stage, stage.token);
  expect(cookie).not.toContain(stage.token);
  const read = () => stage.fetch("/sessions", { token: null, headers: { cookie } });
  expect((await read()).status).toBe(200);
  const { port } = stage.server;
  await stage.stop();
  await stage.start({ port });
  expect((await read()).status).toBe(200);
});

test("no other web page can use the cookie", async () => {
  await using stage = await ServerStage.start();
  const cookie = await cookieFor(stage, stage.token);
  const own = stage.server.url;
  const status = async (method: string, headers: Record<string, string>): Promise<number> => {
    const body = method === "POST" ? { body: JSON.stringify({ cwd: stage.work }) } : {};
    const all = { cookie, "content-type": "application/json", ...headers };
    return (await stage.fetch("/sessions", { method, token: null, headers: all, ...body })).status;
  };
  expect(await status("POST", { origin: own })).toBe(201);
  expect(await status("POST", { "sec-fetch-site": "same-origin" })).toBe(201);
  // Without a word about where it comes from, and from other ports and hosts.
  expect(await status("POST", {})).toBe(403);
  for (const origin of [
    "null",
    "https://evil.example",
    "http://127.0.0.1:1",
    `${own}.evil.example`,
    "http://localhost",
  ])
    expect(await status("POST", { origin }), origin).toBe(403);
  for (const site of ["cross-site", "same-site"]) {
    expect(await status("GET", { "sec-fetch-site": site }), site).toBe(403);
    expect(await status("POST", { "sec-fetch-site": site }), site).toBe(403);
  }
  expect(await status("GET", {})).toBe(200);
});

test("the server answers only to its own names", async () => {
  await using stage = await ServerStage.start({ allowed: { hosts: ["holdfast.example"] } });
  const { port } = stage.server;
  const statusFor = (host: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", reject);
      socket.once("data", (bytes) => {
        resolve(Number(bytes.toString("latin1").split(" ")[1]));
        socket.destroy();
      });
      socket.write(`GET /server HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${stage.token}\r\n\r\n`);
    });
  for (const host of ["localhost", `localhost:${port}`, "127.0.0.1", "[::1]:4040", "HOLDFAST.example", "10.0.0.7"])
    expect(await statusFor(host), host).toBe(200);
  for (const host of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a@localhost", "x/localhost"])
    expect([400, 421], host).toContain(await statusFor(host));
});

test("other origins may call it only if the user has allowed them", async () => {
  const origin = "https://tools.example";
  await using stage = await ServerStage.start({ allowed: { origins: [origin] } });
  const preflight = await stage.fetch("/sessions", { method: "OPTIONS", token: null, headers: { origin } });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
  expect((await stage.fetch("/sessions", { headers: { origin } })).headers.get("access-control-allow-origin")).toBe(
    origin,
  );
  const other = await stage.fetch("/sessions", { headers: { origin: "https://other.example" } });
  expect(other.status).toBe(403);
  expect(other.headers.get("access-control-allow-origin")).toBe(null);
});

test("a read-only token shows one session, and nothing else; it ends when it is removed or expires", async () => {
  await using stage = await ServerStage.start();
  const [shared, secret] = [await stage.session({ title: "shared" }), await stage.session({ title: "secret" })];
  const share = await stage.client.call("createShare", { params: { id: shared }, body: {} });
  const token = share.token!;
  const status = async (path: string, method = "GET"): Promise<number> => {
    const answer = await stage.fetch(path, { token, method });
    await answer.body?.cancel();
    return answer.status;
  };
  for (const path of ["", "/transcript", "/timeline", "/changes", "/usage", "/queue", "/events"])
    expect(await status(`/sessions/${shared}${path}`), path).toBe(200);
  for (const path of ["/sessions", "/trash", "/search?q=x", `/sessions/${secret}`, `/sessions/${secret}/events`])
    expect(await status(path), path).toBe(403);
  for (const path of ["/turns", "/turns/stop", "/permissions", "/fork", "/shares"])
    expect(await status(`/sessions/${shared}${path}`, "POST"), path).toBe(403);
  expect(await (await stage.fetch("/server", { token })).json()).toMatchObject({
    access: "read",
    session: shared,
    store: null,
    cwd: null,
  });
  const { shares } = await stage.client.call("listShares", { params: { id: shared } });
  expect(JSON.stringify(shares)).not.toContain(token);
  await stage.client.call("removeShare", { params: { id: shared, share: share.id } });
  expect(await status(`/sessions/${shared}`)).toBe(401);
});

test("the event streams of a read-only token end when it is removed or expires; the owner's go on", async () => {
  const shares = sharesInMemory();
  await using stage = await ServerStage.start({ shares });
  const id = await stage.session();
  const follow = async (token: string): Promise<{ readonly ended: Promise<void> }> => {
    const answer = await stage.fetch(`/sessions/${id}/events`, { token });
    expect(answer.status).toBe(200);
    const reader = answer.body!.getReader();
    const read = async (): Promise<void> => {
      while (!(await reader.read()).done);
    };
    return { ended: read().catch(() => {}) };
  };
  const share = async (body: { expiresAt?: string } = {}) => stage.client.call("createShare", { params: { id }, body });
  const [removed, expiring, kept] = [
    await share(),
    await share({ expiresAt: new Date(Date.now() + 3_600_000).toISOString() }),
    await share(),
  ];
  const streams = await Promise.all([removed, expiring, kept].map(({ token }) => follow(token!)));
  let isOwnerOn = true;
  void (await follow(stage.token)).ended.then(() => {
    isOwnerOn = false;
  });
  expect(stage.server.streams.count).toBe(4);
  await stage.client.call("removeShare", { params: { id, share: removed.id } });
  await streams[0]!.ended;
  // Its time comes when all of them are followed, however long that took.
  const past = new Date(Date.now() - 1).toISOString();
  shares.change((all) => all.map((one) => (one.id === expiring.id ? { ...one, expiresAt: past } : one)));
  await streams[1]!.ended;
  await expect.poll(() => stage.server.streams.count, PATIENT).toBe(2);
  expect(isOwnerOn).toBe(true);
  expect((await stage.fetch(`/sessions/${id}/events`, { token: expiring.token! })).status).toBe(401);
  const { shares: left } = await stage.client.call("listAllShares");
  expect(left.map((one) => one.id)).toEqual([kept.id]);
});

test("a read-only token expires", () => {
  let now = Date.parse("2026-11-16T12:00:00Z");
  const credentials = new Credentials(newToken(), undefined, () => now);
  const { token } = credentials.share("s", "2026-11-16T13:00:00.000Z");
  const cookie = credentials.cookieFor(token)!;
  expect(credentials.byToken(token)).toMatchObject({ access: "read", session: "s" });
  expect(credentials.byCookie(cookie)).toMatchObject({ access: "read", session: "s" });
  now += 3_600_000;
  expect(credentials.byToken(token)).toBe(null);
  expect(credentials.byCookie(cookie)).toBe(null);
  for (const wrong of ["", ".", "owner.", "owner.x", `x.${cookie.split(".")[1]}`])
    expect(credentials.byCookie(wrong)).toBe(null);
});

test("the log has no token, query or body", async () => {
  const lines: string[] = [];
  await using stage = await ServerStage.start({ log: (line) => lines.push(JSON.stringify(line)) });
  const id = await stage.session({ title: "a secret title" });
  await stage.fetch(`/search?q=secret-words&token=${stage.token}`);
  await cookieFor(stage, stage.token);
  await stage.client.call("startTurn", { params: { id }, body: { text: "secret prompt" } });
  await expect.poll(() => lines.length, PATIENT).toBe(6);
  expect(lines.join("\n")).not.toMatch(new RegExp(`secret|${stage.token}`));
  // The server proves itself to each of the two clients first.
  expect(lines.map((line) => JSON.parse(line).status)).toEqual([204, 201, 400, 204, 204, 202]);
});

test("headers beyond the limit are refused", async () => {
  await using stage = await ServerStage.start();
  expect((await stage.fetch("/server", { headers: { "x-long": "x".repeat(20_000) } })).status).toBe(431);
});
