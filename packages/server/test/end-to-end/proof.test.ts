import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { expect, test } from "vitest";
import { HoldfastClient } from "../../src/client/index.ts";
import { CuttingProxy } from "../cutting-proxy.ts";
import { ServerStage } from "../server-stage.ts";

/** Somebody else's program on a port, and everything that it was sent. */
class Impostor implements AsyncDisposable {
  heard = "";
  readonly #server: Server;

  private constructor(act: (socket: Socket, heard: () => string) => void) {
    this.#server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.on("data", (bytes) => {
        this.heard += bytes.toString("latin1");
      });
      act(socket, () => this.heard);
    });
  }

  static async listen(act: (socket: Socket, heard: () => string) => void, port = 0): Promise<Impostor> {
    const impostor = new Impostor(act);
    await new Promise<void>((resolve) => impostor.#server.listen(port, "127.0.0.1", () => resolve()));
    return impostor;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

const answers = (head: string) => (socket: Socket) => {
  socket.once("data", () => socket.end(`HTTP/1.1 ${head}\r\n\r\n`));
};

const relayTo = (port: number) => (socket: Socket) => {
  const real = connect(port, "127.0.0.1");
  real.on("error", () => socket.destroy());
  socket.pipe(real).pipe(socket);
};

test.each([
  ["claims that everything is fine", "200 OK\r\nContent-Type: application/json\r\nContent-Length: 2", "SERVER_UNKNOWN"],
  ["sends a proof that it made up", "204 No Content\r\nHoldfast-Proof: c29tZXRoaW5n", "SERVER_UNPROVEN"],
  ["sends no proof", "204 No Content", "SERVER_UNPROVEN"],
  ["refuses", "401 Unauthorized", "TOKEN_MISSING"],
  ["sends it elsewhere", "307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/", "SERVER_UNKNOWN"],
])("a listener that %s gets no token", async (_what, head, code) => {
  await using impostor = await Impostor.listen(answers(head));
  const token = "a-token-of-the-owner-0123456789";
  const client = new HoldfastClient({ url: impostor.url, token });
  await expect(client.call("getServer")).rejects.toMatchObject({ code });
  await expect(Array.fromAsync(client.events("s"))).rejects.toMatchObject({ code });
  expect(impostor.heard).toContain("GET /auth/proof?");
  expect(impostor.heard.toLowerCase()).not.toContain("authorization");
  expect(impostor.heard).not.toContain(token);
});

test("a listener on another port that passes everything on to the real server gets no token, unless it is named", async () => {
  await using stage = await ServerStage.start();
  await using impostor = await Impostor.listen(relayTo(stage.server.port));
  const client = new HoldfastClient({ url: impostor.url, token: stage.token });
  await expect(client.call("getServer")).rejects.toMatchObject({
    code: "SERVER_UNPROVEN",
    message: expect.stringContaining(`--allow-host ${new URL(impostor.url).host}`),
  });
  expect(impostor.heard).not.toContain(stage.token);
  const { port } = stage.server;
  await stage.stop();
  await stage.start({ port, allowed: { hosts: [new URL(impostor.url).host] } });
  expect(await client.call("getServer")).toMatchObject({ access: "owner" });
});

test("a client that was connected sends nothing to a program that takes the port of a server that died", async () => {
  await using stage = await ServerStage.start();
  const { client } = stage;
  const { port } = stage.server;
  expect(await client.call("getServer")).toMatchObject({ access: "owner" });
  await stage.stop();
  {
    await using impostor = await Impostor.listen(answers("204 No Content"), port);
    await expect(client.call("getServer")).rejects.toMatchObject({ code: "SERVER_UNPROVEN" });
    expect(impostor.heard).not.toContain(stage.token);
  }
  await stage.start({ port });
  expect(await client.call("getServer")).toMatchObject({ access: "owner" });
});

test("a server with peers sends them nothing before they have proven themselves", async () => {
  await using impostor = await Impostor.listen(answers("204 No Content"));
  await using stage = await ServerStage.start({ peers: [impostor.url] });
  const id = await stage.session();
  await stage.client.call("closeSession", { params: { id } });
  await stage.client.call("getSession", { params: { id } });
  expect(impostor.heard).toContain("GET /auth/proof?");
  expect(impostor.heard).not.toContain(stage.token);
});

test("a peer that is named localhost proves itself, as it does to a client", async () => {
  await using other = await ServerStage.start();
  const id = await other.session();
  await using stage = await ServerStage.start({
    token: other.token,
    peers: [`${other.server.url.replace("127.0.0.1", "localhost")}/`],
  });
  const client = new HoldfastClient({ url: stage.server.url, token: other.token });
  expect(await client.call("getSession", { params: { id } })).toMatchObject({ here: true });
});

test("a read-only token works in the same way; programs that send a token right away go on working", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session();
  const { token } = await stage.client.call("createShare", { params: { id }, body: {} });
  const reader = new HoldfastClient({ url: stage.server.url.replace("127.0.0.1", "localhost"), token: token! });
  expect(await reader.call("getServer")).toMatchObject({ access: "read", session: id });
  expect((await stage.fetch("/sessions")).status).toBe(200);
  const stranger = new HoldfastClient({ url: stage.server.url, token: "not-a-token-of-this-server" });
  await expect(stranger.call("getServer")).rejects.toMatchObject({ code: "TOKEN_MISSING" });
});

test("a connection that is cut at any byte of the proof is an unreachable server, and the next one works", async () => {
  await using stage = await ServerStage.start({ allowed: { hosts: ["127.0.0.1"] } });
  let afterBytes = 0;
  await using proxy = await CuttingProxy.start(stage.server.port, () => ({ afterBytes, how: "end" }));
  const call = () => new HoldfastClient({ url: proxy.url, token: stage.token }).call("getServer");
  for (afterBytes = 0; afterBytes < 200; afterBytes += 7)
    await expect(call()).rejects.toMatchObject({ code: "SERVER_UNREACHABLE" });
  afterBytes = Number.MAX_SAFE_INTEGER;
  expect(await call()).toMatchObject({ access: "owner" });
});
