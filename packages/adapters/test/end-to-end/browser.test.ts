import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import {
  AbstractChat,
  type ChatState,
  type ChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";
import { expect, test, vi } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { blocks, runnable } from "./guide.ts";

/** The server of the guide, as it stands there, with pages that use the SDK's own chat and the guide's transport. */

const HTTP = `
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { handle } from "./chat.ts";
const server = createServer(async (incoming, outgoing) => {
  try {
    const hasBody = incoming.method === "POST";
    const body = hasBody ? { body: Readable.toWeb(incoming), duplex: "half" } : {};
    const response = await handle(new Request("http://localhost" + incoming.url, { method: incoming.method, ...body }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(response.body).on("error", () => {}).pipe(outgoing);
    else outgoing.end();
  } catch (error) {
    outgoing.writeHead(500).end(String(error));
  }
});
server.listen(0, "127.0.0.1", () => console.log("port " + server.address().port));
`;

const URL_NAME = "HOLDFAST_TEST_URL";

/** A folder with the guide's server in it, which can be started and killed. */
class Server implements AsyncDisposable {
  readonly #place = place();
  readonly folder = this.#place.path;
  #process: ChildProcess | null = null;
  #said: string[] = [];
  url = "";

  constructor() {
    const agent = readFileSync(join(import.meta.dirname, "browser-agent.ts"), "utf8");
    const files = Object.fromEntries(blocks().flatMap(({ file, code }) => (file ? [[file, code]] : [])));
    // A page knows where it came from; here there is none.
    const transport = files["transport.ts"]!.replaceAll("`/api/", `\`\${process.env.${URL_NAME}}/api/`);
    runnable(this.folder, { ...files, "transport.ts": transport, "agent.ts": agent, "server.ts": HTTP });
  }

  async start(): Promise<void> {
    this.#said = [];
    const child = spawn(process.execPath, ["--conditions=holdfast-source", "server.ts"], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#process = child;
    createInterface(child.stdout).on("line", (line) => this.#said.push(line));
    await this.says("port ");
    this.url = `http://127.0.0.1:${this.#said.find((line) => line.startsWith("port "))!.slice(5)}`;
    process.env[URL_NAME] = this.url;
  }

  /** Until it says so, for the how many-eth time. */
  async says(word: string, times = 1): Promise<void> {
    await vi.waitFor(
      () => expect(this.#said.filter((line) => line.startsWith(word)).length).toBeGreaterThanOrEqual(times),
      { timeout: 60_000, interval: 5 },
    );
  }

  /** Lets the model go on where it waits. */
  release(name = "speaking"): void {
    writeFileSync(join(this.folder, name), "");
  }

  async kill(): Promise<void> {
    const child = this.#process!;
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  lines(name: string): string[] {
    const path = join(this.folder, name);
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
  }

  async create(): Promise<string> {
    const response = await fetch(`${this.url}/api/chat`, { method: "POST" });
    return ((await response.json()) as { id: string }).id;
  }

  async transcript(id: string): Promise<UIMessage[]> {
    return (await (await fetch(`${this.url}/api/chat/${id}`)).json()) as UIMessage[];
  }

  async transport(): Promise<ChatTransport<UIMessage>> {
    const made = (await import(pathToFileURL(join(this.folder, "transport.ts")).href)) as { transport: never };
    return made.transport;
  }

  /** A page that is loaded now: with the transcript, and with the running stream if there is one. */
  async load(id: string): Promise<{ page: Page; resumed: Promise<void> }> {
    const page = new Page(id, await this.transcript(id), await this.transport());
    return { page, resumed: page.resumeStream() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process?.exitCode === null && this.#process.signalCode === null) await this.kill();
    this.#place[Symbol.dispose]();
  }
}

/** What `useChat` has, without React. */
class Page extends AbstractChat<UIMessage> {
  constructor(id: string, messages: UIMessage[], transport: ChatTransport<UIMessage>) {
    const state: ChatState<UIMessage> = {
      status: "ready",
      error: undefined,
      messages,
      pushMessage: (message) => {
        state.messages = [...state.messages, message];
      },
      popMessage: () => {
        state.messages = state.messages.slice(0, -1);
      },
      replaceMessage: (at, message) => {
        state.messages = state.messages.with(at, structuredClone(message));
      },
      snapshot: (thing) => structuredClone(thing),
    };
    super({ id, state, transport, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  }

  get shown(): unknown[] {
    return plain(this.messages);
  }
}

/** As JSON carries it, without what only the stream or only the journal knows. */
function plain(messages: readonly UIMessage[]): unknown[] {
  return (JSON.parse(JSON.stringify(messages)) as UIMessage[]).map(({ metadata: _, ...message }) => ({
    ...message,
    parts: message.parts.map((part) => {
      if (part.type !== "reasoning") return part;
      const { id: _id, ...reasoning } = part;
      return reasoning;
    }),
  }));
}

const textOf = ({ parts }: UIMessage): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("");

test("the prompt comes from the browser, the conversation from the session, and a reloaded page has what it had", async () => {
  await using server = new Server();
  await server.start();
  server.release();
  const id = await server.create();
  const { page, resumed } = await server.load(id);
  await resumed;
  await page.sendMessage({ text: "Please look." });
  expect(page.error).toBe(undefined);
  expect(page.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(page.messages[1]!.id).toBe(`${id}.1`);
  expect(page.shown).toEqual(plain(await server.transcript(id)));
  expect(JSON.stringify(page.messages[1]), "the tool's own output, not what the model saw").toContain('"seen":"here"');

  // What the page makes of the past is of no consequence.
  page.messages = [{ id: "x", role: "assistant", parts: [{ type: "text", text: "I promised you everything." }] }];
  await page.sendMessage({ text: "And now?" });
  const sent = server.lines("asked").at(-1)!;
  expect(sent).toContain("Please look.");
  expect(sent).toContain("Seen.");
  expect(sent).not.toContain("promised");
  const reloaded = await server.load(id);
  await reloaded.resumed;
  expect(reloaded.page.shown).toEqual(plain(await server.transcript(id)));
  expect(reloaded.page.messages.map(textOf).at(-1)).toBe("That was prompt 2: all is well.");
  expect(server.lines("effects")).toHaveLength(1);
});

test("a page that is reloaded in mid-stream takes up the running answer: both pages end with the same, once", async () => {
  await using server = new Server();
  await server.start();
  const id = await server.create();
  const { page } = await server.load(id);
  const sent = page.sendMessage({ text: "Please look." });
  await server.says("speaking");
  const { page: second, resumed } = await server.load(id);
  expect(
    second.messages.map(({ role }) => role),
    "the step that is recorded is there",
  ).toEqual(["user", "assistant"]);
  await vi.waitFor(() => expect(textOf(second.messages.at(-1)!)).toMatch(/^I look first\.That $/), 60_000);
  server.release();
  await Promise.all([sent, resumed]);
  const { page: third, resumed: late } = await server.load(id);
  await late;
  for (const one of [page, second, third]) expect(one.shown).toEqual(plain(await server.transcript(id)));
  expect(second.messages).toHaveLength(2);
});

test("the server is killed in mid-stream: the reloaded page has what was recorded, and sees the rest come", async () => {
  await using server = new Server();
  await server.start();
  const id = await server.create();
  const { page } = await server.load(id);
  const sent = page.sendMessage({ text: "Please look." });
  await server.says("speaking");
  await vi.waitFor(() => expect(textOf(page.messages.at(-1)!)).toContain("That"), 60_000);
  const answer = page.messages.at(-1)!.id;
  await server.kill();
  await sent;
  expect(page.status).toBe("error");

  await server.start();
  await server.says("speaking");
  const { page: again, resumed } = await server.load(id);
  expect(again.messages.map((message) => message.id)).toEqual([page.messages[0]!.id, answer]);
  expect(JSON.stringify(again.messages[1])).toContain('"seen":"here"');
  server.release();
  await resumed;
  expect(again.shown).toEqual(plain(await server.transcript(id)));
  expect(textOf(again.messages[1]!)).toBe("I look first.That was prompt 1: all is well.");
  expect(server.lines("effects"), "the tool ran once").toHaveLength(1);
  expect(server.lines("asked"), "the request that died was sent again, and no other").toHaveLength(3);
});

test("killed between the answer and the end of the turn, nothing is asked again", async () => {
  await using server = new Server();
  await server.start();
  server.release();
  const id = await server.create();
  const { page } = await server.load(id);
  // The answer is there; whether its end was, nobody knows.
  await page.sendMessage({ text: "Hello." });
  await server.kill();
  await server.start();
  const { page: again, resumed } = await server.load(id);
  await resumed;
  expect(again.shown).toEqual(page.shown);
  expect(server.lines("asked")).toHaveLength(1);
});

test("an approval is given to a server that knows of it from its disk alone, and the call runs once", async () => {
  await using server = new Server();
  await server.start();
  server.release();
  const id = await server.create();
  const { page } = await server.load(id);
  await page.sendMessage({ text: "Please send." });
  const part = page.messages.at(-1)!.parts.at(-1) as unknown as { state: string; approval: { id: string } };
  expect(part.state).toBe("approval-requested");
  await server.kill();
  await server.start();
  const { page: again, resumed } = await server.load(id);
  await resumed;
  expect(again.shown).toEqual(page.shown);
  await again.addToolApprovalResponse({ id: part.approval.id, approved: true });
  await vi.waitFor(() => expect(textOf(again.messages.at(-1)!)).toContain("all is well"), 60_000);
  await vi.waitFor(() => expect(again.status).toBe("ready"), 60_000);
  expect(again.messages).toHaveLength(2);
  expect(again.shown).toEqual(plain(await server.transcript(id)));
  expect(server.lines("effects")).toHaveLength(1);
  // Once more, by a page that does not know.
  const body = JSON.stringify({
    message: { ...again.messages.at(-1)!, parts: [{ ...part, state: "approval-responded" }] },
  });
  const response = await fetch(`${server.url}/api/chat/${id}`, { method: "POST", body });
  expect(response.status).toBe(500);
  expect(server.lines("effects")).toHaveLength(1);
});

test("a prompt that is sent twice is one turn; one that comes while the model answers waits for its turn", async () => {
  await using server = new Server();
  await server.start();
  const id = await server.create();
  const { page } = await server.load(id);
  const sent = page.sendMessage({ text: "Hello." });
  await server.says("speaking");
  const message = page.messages[0];
  const post = (given: unknown): Promise<string> =>
    fetch(`${server.url}/api/chat/${id}`, { method: "POST", body: JSON.stringify({ message: given }) }).then(
      (response) => response.text(),
    );
  const twice = post(message);
  const next = post({ id: "p2", role: "user", parts: [{ type: "text", text: "And now?" }] });
  server.release();
  await sent;
  expect(await twice).toContain("That ");
  expect(await next).toContain("prompt ");
  const transcript = await server.transcript(id);
  expect(transcript.map((one) => one.id)).toEqual([message!.id, `${id}.1`, "p2", `${id}.2`]);
  expect(server.lines("asked")).toHaveLength(2);
});
