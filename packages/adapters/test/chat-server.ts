import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { UIMessage } from "ai";
import { newId } from "holdfast";
import { expect, vi } from "vitest";
import { place } from "../../holdfast/test/place.ts";
import type { ChatState } from "../src/ai-sdk/index.ts";
import { blocks, runnable } from "./end-to-end/guide.ts";
import { Page, transportOf } from "./page.ts";

/** A chat server in a folder of its own, which can be started and killed. Its agent waits where the test says so. */
export class ChatServer implements AsyncDisposable {
  readonly #place = place();
  readonly folder = this.#place.path;
  readonly id = newId();
  readonly #processes = new Set<ChildProcess>();
  #said: string[] = [];
  /** What all of them complained about. */
  stderr = "";
  url = "";

  readonly #program: string;

  /** `files`: the server, which says its address, as `server.ts` with or without an `agent.ts`, or as `server.mjs`. */
  constructor(files: Readonly<Record<string, string>>) {
    this.#program = "server.mjs" in files ? "server.mjs" : "server.ts";
    const agent = readFileSync(join(import.meta.dirname, "end-to-end/browser-agent.ts"), "utf8");
    runnable(this.folder, { "agent.ts": agent, ...files });
  }

  /** Starts it; after a kill, at the same address. `store`: an address other than a folder beside it. */
  async start({ store = "", isOther = false } = {}): Promise<{ readonly url: string; kill(): Promise<void> }> {
    const said: string[] = [];
    if (!isOther) this.#said = said;
    const child = spawn(process.execPath, ["--conditions=holdfast-source", this.#program], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        PORT: this.url === "" || isOther ? "0" : new URL(this.url).port,
        ...(store === "" ? {} : { CHAT_STORE: store }),
      },
    });
    this.#processes.add(child);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      process.stderr.write(text);
    });
    createInterface(child.stdout).on("line", (line) => said.push(line));
    await waitFor(said, "http://");
    const url = said.find((line) => line.startsWith("http://"))!;
    if (!isOther) this.url = url;
    return { url, kill: () => this.#kill(child) };
  }

  /** Until the server says so, this many times. */
  says(word: string, times = 1): Promise<void> {
    return waitFor(this.#said, word, times);
  }

  /** Lets the agent go on where it waits. */
  release(name = "speaking"): void {
    writeFileSync(join(this.folder, name), "");
  }

  async kill(): Promise<void> {
    for (const child of this.#processes) await this.#kill(child);
  }

  /** As a deploy does. */
  async terminate(): Promise<void> {
    for (const child of this.#processes) await this.#kill(child, "SIGTERM");
  }

  async #kill(child: ChildProcess, signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    this.#processes.delete(child);
    child.kill(signal);
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
  }

  lines(name: string): string[] {
    const path = join(this.folder, name);
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
  }

  async state(id = this.id, url = this.url): Promise<ChatState> {
    return (await (await fetch(`${url}/api/chat/${id}`)).json()) as ChatState;
  }

  post(body: object, url = this.url): Promise<Response> {
    const headers = { "content-type": "application/json" };
    return fetch(`${url}/api/chat`, { method: "POST", headers, body: JSON.stringify({ id: this.id, ...body }) });
  }

  async transcript(url = this.url): Promise<UIMessage[]> {
    return (await this.state(this.id, url)).messages;
  }

  /** A page that is loaded now: with the transcript, and with the running stream if there is one. */
  async load(url = this.url): Promise<{ page: Page; resumed: Promise<void> }> {
    const page = new Page(this.id, await this.transcript(url), { transport: transportOf(url) });
    return { page, resumed: page.resumeStream() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#place[Symbol.dispose]();
  }
}

/** The files of the guide, as they stand there. */
export function guideFiles(): Record<string, string> {
  return Object.fromEntries(blocks("browser-chats").flatMap(({ file, code }) => (file ? [[file, code]] : [])));
}

/** The server of the guide, on Hono. */
export function guideServer(): ChatServer {
  return new ChatServer(guideFiles());
}

/**
 * A server that calls the route of the guide as Next.js 16 does. The types are those against which Next.js checks a
 * route (`RouteHandlerConfig` in its generated `validator.ts`).
 */
export const NEXT_SERVER = `
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import * as route from "./route.ts";

class NextRequest extends Request {
  get nextUrl(): URL {
    return new URL(this.url);
  }
}
type Handler = (
  request: NextRequest,
  context: { params: Promise<{ chat?: string[] }> },
) => Promise<Response | void> | Response | void;
type RouteHandlerConfig = { readonly [M in "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"]?: Handler };
type IsExpected<Specific extends RouteHandlerConfig> = Specific;
const handlers: IsExpected<typeof route> = route;

const server = createServer(async (incoming, outgoing) => {
  const { url = "/", method = "GET", headers } = incoming;
  const handler = (handlers as RouteHandlerConfig)[method as keyof RouteHandlerConfig];
  const at = new URL(url, "http://localhost");
  const segments = at.pathname.split("/").slice(3).map(decodeURIComponent);
  if (!handler || !at.pathname.startsWith("/api/chat")) return void outgoing.writeHead(handler ? 404 : 405).end();
  const body = method === "POST" ? { body: Readable.toWeb(incoming) as never, duplex: "half" } : {};
  const request = new NextRequest(at, { method, headers: headers as Record<string, string>, ...body } as RequestInit);
  const response = await handler(request, { params: Promise.resolve(segments.length > 0 ? { chat: segments } : {}) });
  outgoing.writeHead(response!.status, Object.fromEntries(response!.headers)).flushHeaders();
  for await (const piece of response!.body ?? []) outgoing.write(piece);
  outgoing.end();
}).listen(Number(process.env["PORT"] ?? 3000), () =>
  console.log(\`http://localhost:\${(server.address() as AddressInfo).port}\`),
);
`;

async function waitFor(said: readonly string[], word: string, times = 1): Promise<void> {
  await vi.waitFor(() => expect(said.filter((line) => line.startsWith(word)).length).toBeGreaterThanOrEqual(times), {
    timeout: 60_000,
    interval: 5,
  });
}
