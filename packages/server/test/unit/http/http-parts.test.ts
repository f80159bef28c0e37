import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "holdfast";
import { afterEach, expect, test, vi } from "vitest";
import { problemOf } from "../../../src/access/problem-of.ts";
import { refuse } from "../../../src/access/request-error.ts";
import { HoldfastClient } from "../../../src/client/client.ts";
import { refuseConnection } from "../../../src/http/bad-requests.ts";
import { Connections } from "../../../src/http/connections.ts";
import { PAGE_POLICY, readPage } from "../../../src/http/page-files.ts";
import { Peers } from "../../../src/http/peers.ts";
import { ReaderLanes } from "../../../src/http/reader-lanes.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("the page's files are known by their paths, with their types; anything else in the folder is not served", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-page-"));
  try {
    mkdirSync(join(folder, "assets"));
    const files = ["index.html", "other.html", "assets/app-BxYz0123.js", "assets/app.css", "secret.txt", "LICENSE"];
    for (const file of [...files, "i.ico", "i.png", "i.svg", "m.webmanifest", "f.woff2", "d.json"])
      writeFileSync(join(folder, file), `content of ${file}`);
    const page = readPage(folder);
    const typed = [...page].map(([path, { headers }]) => [path, headers["content-type"]]);
    expect(Object.fromEntries(typed)).toEqual({
      "/": "text/html; charset=utf-8",
      "/other.html": "text/html; charset=utf-8",
      "/assets/app-BxYz0123.js": "text/javascript; charset=utf-8",
      "/assets/app.css": "text/css; charset=utf-8",
      ...{ "/i.ico": "image/x-icon", "/i.png": "image/png", "/i.svg": "image/svg+xml", "/d.json": "application/json" },
      ...{ "/m.webmanifest": "application/manifest+json", "/f.woff2": "font/woff2" },
    });
    // Only documents have a policy; only what changes its name with its content is kept for ever.
    for (const [path, { headers }] of page) {
      const isDocument = path === "/" || path.endsWith(".html");
      expect(headers["content-security-policy"]).toBe(isDocument ? PAGE_POLICY : undefined);
      expect(headers["cache-control"]?.includes("immutable")).toBe(path === "/assets/app-BxYz0123.js");
      expect(headers["cache-control"] === "no-cache").toBe(path !== "/assets/app-BxYz0123.js");
    }
    expect(Buffer.from(page.get("/")!.bytes).toString()).toBe("content of index.html");
    const tags = new Set([...page.values()].map(({ headers }) => headers["etag"]));
    expect(tags.size).toBe(page.size);
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]{22}"$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a page can run and load nothing but its own", () => {
  const rules = new Map(PAGE_POLICY.split("; ").map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1)]));
  for (const name of ["default-src", "base-uri", "form-action", "frame-ancestors"])
    expect(rules.get(name)).toEqual(["'none'"]);
  for (const name of ["script-src", "style-src", "font-src", "connect-src", "manifest-src"])
    expect(rules.get(name)).toEqual(["'self'"]);
  expect(rules.get("img-src")).toEqual(["'self'", "data:", "blob:"]);
  expect(rules.size).toBe(10);
});

const flush = () => new Promise((resolve) => setImmediate(resolve));

test("four requests of a link are worked on at a time, the others in order, and other links do not wait", async () => {
  const lanes = new ReaderLanes();
  const entered: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = (share: string, name: string) =>
    void lanes.enter(share).then((done) => {
      entered.push(name);
      leave.set(name, done);
    });
  for (const name of ["1", "2", "3", "4", "5", "6"]) enter("a", name);
  enter("b", "other");
  await flush();
  expect(entered).toEqual(["1", "2", "3", "4", "other"]);
  leave.get("2")!();
  await flush();
  await flush();
  expect(entered.slice(5)).toEqual(["5"]);
  for (const name of ["1", "3", "4", "5"]) leave.get(name)!();
  await flush();
  await flush();
  expect(entered.slice(6)).toEqual(["6"]);
  leave.get("6")!();
  // All have left: four find room again.
  for (const name of ["7", "8", "9", "10", "11"]) enter("a", name);
  await flush();
  expect(entered.slice(7)).toEqual(["7", "8", "9", "10"]);
});

/** A connection that remembers whether it was closed. */
class Line extends EventEmitter {
  isClosed = false;
  writableLength = 0;
  _handle: { writeQueueSize: number } | null = null;
  readonly remoteAddress: string | undefined;

  constructor(remoteAddress?: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.isClosed = true;
    this.emit("close");
  }
}

const lines = (...addresses: (string | undefined)[]) => addresses.map((address) => new Line(address));
const asSocket = (line: Line) => line as unknown as Socket;

test("beyond the limit a new connection takes the place of the oldest of who has most, never of the owner", () => {
  const connections = new Connections(4);
  const [own, one, two, three, next, fifth, sixth] = lines("o", "a", "b", "b", "c", "d", "e");
  for (const line of [own!, one!, two!, three!]) connections.add(asSocket(line));
  connections.admit(asSocket(own!), "owner");
  connections.admit(asSocket(own!), "read");
  expect([own, one, two, three].map((line) => line!.isClosed)).toEqual([false, false, false, false]);
  connections.add(asSocket(next!));
  expect([own, one, two, three, next].map((line) => line!.isClosed)).toEqual([false, false, true, false, false]);
  // Who has shown a link is closed after those who have shown nothing.
  connections.admit(asSocket(one!), "read");
  connections.add(asSocket(fifth!));
  expect([one, three, next].map((line) => line!.isClosed)).toEqual([false, true, false]);
  for (const line of [next!, fifth!]) connections.admit(asSocket(line), "owner");
  connections.add(asSocket(sixth!));
  expect([one, sixth].map((line) => line!.isClosed)).toEqual([true, false]);
  connections.admit(asSocket(sixth!), "owner");
  const [late, later] = lines("z", undefined);
  connections.add(asSocket(late!));
  expect([late!.isClosed, own!.isClosed]).toEqual([true, false]);
  own!.destroy();
  connections.add(asSocket(later!));
  expect(later!.isClosed).toBe(false);
});

test("a client that sends more than sixteen requests without reading an answer is closed", () => {
  const connections = new Connections(4);
  const [line] = lines("a");
  connections.add(asSocket(line!));
  const ends = Array.from({ length: 16 }, () => connections.begin(asSocket(line!)));
  ends[0]!();
  connections.begin(asSocket(line!));
  expect(line!.isClosed).toBe(false);
  connections.begin(asSocket(line!));
  expect(line!.isClosed).toBe(true);
  // One that is not known, such as one that was closed already.
  connections.begin(asSocket(new Line()))();
});

test("a client that reads nothing of an answer for too long is closed, one that reads slowly is not", () => {
  const connections = new Connections(4);
  const [stuck, slow, idle] = lines("a", "b", "c");
  for (const line of [stuck!, slow!, idle!]) connections.add(asSocket(line));
  stuck!.writableLength = 10;
  slow!.writableLength = 100;
  slow!._handle = { writeQueueSize: 80 };
  connections.closeStuck(1000, 5000);
  connections.closeStuck(1000, 5999);
  slow!._handle = { writeQueueSize: 60 };
  expect(stuck!.isClosed).toBe(false);
  connections.closeStuck(1000, 6000);
  expect([stuck!.isClosed, slow!.isClosed, idle!.isClosed]).toEqual([true, false, false]);
  connections.closeStuck(1000, 6999);
  expect(slow!.isClosed).toBe(false);
  connections.closeStuck(1000, 7000);
  expect([slow!.isClosed, idle!.isClosed]).toEqual([true, false]);
});

/** What refuseConnection does to a connection. */
function refused(code: string, isWritable = true) {
  const line = Object.assign(new Line(), {
    writable: isWritable,
    written: "",
    end: (text: string) => {
      line.written = text;
    },
  });
  refuseConnection(Object.assign(new Error("x"), { code }), line as never);
  return line;
}

test("what is no request is answered in our own words, and the connection ends", () => {
  vi.useFakeTimers();
  for (const [code, status, name] of [
    ["HPE_HEADER_OVERFLOW", "431 Request Header Fields Too Large", "HEADERS_TOO_LARGE"],
    ["ERR_HTTP_REQUEST_TIMEOUT", "408 Request Timeout", "REQUEST_TOO_SLOW"],
    ["HPE_INVALID_METHOD", "400 Bad Request", "REQUEST_INVALID"],
  ] as const) {
    const line = refused(code);
    const [head, body] = line.written.split("\r\n\r\n");
    expect(head!.split("\r\n")).toEqual([
      `HTTP/1.1 ${status}`,
      "Content-Type: application/problem+json",
      `Content-Length: ${Buffer.byteLength(body!)}`,
      "Cache-Control: no-store",
      "Connection: close",
    ]);
    expect(JSON.parse(body!)).toMatchObject({ code: name });
    expect(line.isClosed).toBe(false);
    vi.advanceTimersByTime(2000);
    expect(line.isClosed).toBe(true);
  }
  const closed = refused("HPE_INVALID_METHOD");
  closed.emit("close");
  vi.advanceTimersByTime(2000);
  expect(closed.isClosed).toBe(false);
  for (const line of [refused("ECONNRESET"), refused("HPE_INVALID_METHOD", false)])
    expect([line.isClosed, line.written]).toEqual([true, ""]);
});

test("other servers are asked first for what changes a session or is complete only there, if there are any", () => {
  const [some, none] = [new Peers(["http://x/"], "t"), new Peers([], "t")];
  const asked = (peers: Peers) => [
    peers.goFirst("stopTurn", { method: "post" }),
    peers.goFirst("getQueue", { method: "get" }),
    peers.goFirst("followEvents", { method: "get" }),
    peers.goFirst("getTranscript", { method: "get" }),
  ];
  expect([asked(some), asked(none)]).toEqual([
    [true, true, true, false],
    [false, false, false, false],
  ]);
  const busy = (sameProcess: boolean) => new HoldfastError("SESSION_BUSY", "busy", { sameProcess });
  const unknown = refuse("RECORDER_UNKNOWN", "x");
  expect([some.canHelp(busy(false)), some.canHelp(unknown), none.canHelp(unknown)]).toEqual([true, true, false]);
  expect([some.canHelp(busy(true)), none.canHelp(busy(false))]).toEqual([false, false]);
  expect([some.canHelp(refuse("REQUEST_INVALID", "x")), some.canHelp(new TypeError("bug"))]).toEqual([false, false]);
});

test("each refusal has the status that HTTP has for it, and only those that are not ours are unexpected", () => {
  const coded = (code: string) => Object.assign(new Error("why"), { name: "CommandError", code });
  const status = (code: string) => problemOf(coded(code)).problem.status;
  const contract: Record<number, string[]> = {
    400: ["QUERY_INVALID"],
    404: ["SESSION_NOT_FOUND", "QUEUE_UNKNOWN"],
    409: ["SESSION_BUSY", "SESSION_CLOSED", "SESSION_EXISTS", "NOTHING_TO_RESUME", "NOTHING_TO_COMPACT", "STEP_SPLIT"],
    410: ["CURSOR_STALE"],
    413: ["RECORD_TOO_LARGE"],
    422: ["USAGE", "RECORD_INVALID", "RECORD_NOT_JSON", "MODEL_ANYTHING"],
    500: ["ANYTHING"],
    503: ["STORE_CLOSED", "STORE_FORBIDDEN", "STORE_IO", "SYNC_FAILED"],
    507: ["STORE_FULL"],
  };
  for (const [expected, codes] of Object.entries(contract))
    for (const code of codes) expect([code, status(code)]).toEqual([code, Number(expected)]);
  for (const code of ["STOPPED", "TURN_ENDED", "TURN_OPEN", "TURN_UNANSWERED", "UNDO_TOO_LATE"])
    expect([code, status(code)]).toEqual([code, 409]);
  expect(problemOf(new HoldfastError("SESSION_BUSY", "why", { pid: 7 }))).toEqual({
    problem: {
      ...{ type: "urn:holdfast:error:SESSION_BUSY", title: "Session busy", status: 409, code: "SESSION_BUSY" },
      ...{ detail: "why", facts: { pid: 7 } },
    },
    isUnexpected: false,
  });
  expect(problemOf(coded("USAGE")).problem).not.toHaveProperty("facts");
  // What is inside this process is not told.
  for (const error of [
    new TypeError("secret"),
    Object.assign(new Error("secret"), { name: "CommandError", code: 7 }),
    "x",
  ]) {
    const { problem, isUnexpected } = problemOf(error);
    expect([problem.status, problem.code, isUnexpected, problem.detail.includes("secret")]).toEqual([
      ...[500, "UNEXPECTED", true, false],
    ]);
  }
});

/** A stranger's server, which answers what it likes. */
async function answering(status: number, body: string, type = "application/problem+json") {
  const server = createServer((_request, response) => response.writeHead(status, { "content-type": type }).end(body));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new HoldfastClient({ url: `${url}//`, token: "t" });
  const close = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { client, url, close };
}

test("what does not prove to be the server gets no token, and is told from one that is gone", async () => {
  for (const [status, code] of [
    [401, "TOKEN_MISSING"],
    [421, "SERVER_UNPROVEN"],
    [204, "SERVER_UNPROVEN"],
    [404, "SERVER_UNKNOWN"],
    [500, "SERVER_UNKNOWN"],
  ] as const) {
    const { client, url, close } = await answering(status, "");
    expect(client.url).toBe(url);
    await expect(client.call("getServer")).rejects.toMatchObject({ code });
    await close();
  }
  const { client, close } = await answering(200, "");
  await close();
  await expect(client.call("getServer")).rejects.toMatchObject({ code: "SERVER_UNREACHABLE", status: 0 });
  expect(new HoldfastClient({ url: "http://localhost:4040/", token: "t" }).url).toBe("http://127.0.0.1:4040");
  expect(new HoldfastClient({ url: "http://localhosts:4040", token: "t" }).url).toBe("http://localhosts:4040");
});
