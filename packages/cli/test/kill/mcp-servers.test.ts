import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, onTestFinished, test } from "vitest";
import type { Limits } from "../../src/mcp/connection.ts";
import { McpServers } from "../../src/mcp/servers.ts";
import type { ServerSettings } from "../../src/mcp-settings/server-settings.ts";
import { identify } from "../../src/tools/shell/process-groups.ts";
import { PNG } from "../mcp-server.ts";
import { call, Stage, text } from "../unit/host/host-stage.ts";

const program = join(import.meta.dirname, "../mcp-server.ts");

/** Only what never comes takes this long. */
const LIMITS: Limits = {
  startMs: 100_000,
  restartMs: 100_000,
  backOffMs: [1, 1, 1],
  stableMs: 60_000,
  retryMs: 0,
  callMs: 100_000,
  pingMs: 100_000,
};

const setting = (args: readonly string[] = [], more: Partial<ServerSettings> = {}): ServerSettings =>
  ({
    command: process.execPath,
    args: [program, ...args],
    env: {},
    timeoutSeconds: 100,
    enabled: true,
    ...more,
  }) as never;

/** Servers that end with the test. */
function start(servers: Readonly<Record<string, ServerSettings>>, limits: Partial<Limits> = {}): McpServers {
  const env = { PATH: process.env["PATH"], HOME: homedir() };
  const variables = { ...env, SECRET: "s3cret" };
  const made = new McpServers(servers, { version: "0", env, variables, limits: { ...LIMITS, ...limits } });
  onTestFinished(() => made.close());
  return made;
}

/** The same, when they are ready: a turn waits for them only for a while. */
async function started(servers: Readonly<Record<string, ServerSettings>>): Promise<McpServers> {
  const made = start(servers);
  await made.settled();
  return made;
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-mcp-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await passed(10);
}

/** The process that has written its id there, once it has. */
async function pidIn(file: string): Promise<number> {
  await until(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"));
  return Number(readFileSync(file, "utf8"));
}

/** Every record of the only session, as it is on disk. */
function journalOf({ folder }: Stage): string {
  const files = globSync("sessions/**/*", { cwd: folder, withFileTypes: true }).filter((one) => one.isFile());
  return files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8")).join("\n");
}

const tool = (servers: McpServers, name: string) => {
  const found = servers.tools.flat().find((one) => one.name === name);
  if (!found) throw new Error(`${name} is not among ${servers.tools.flat().map((one) => one.name)}`);
  return found;
};
const ask = async (servers: McpServers, name: string, input: object = {}): Promise<unknown> =>
  servers.call(tool(servers, name), input, {});
const textIn = (result: unknown): string =>
  (result as { content: { text: string }[] }).content.map((part) => part.text).join("");

test("what was always allowed is not asked about again; where nobody can be asked, the call is denied", async () => {
  await using stage = new Stage();
  const servers = await started({ test: setting() });
  const allowed = await stage.chat(
    [
      [call("c1", "mcp__test__echo", { text: "a" }), call("c2", "mcp__test__count", { file: "/nowhere" })],
      [text("done")],
    ],
    { servers, config: { allow: ["mcp__test__echo"] } },
  );
  await allowed.prompt("go");
  await allowed.settled();
  const states = allowed.state.items.flatMap((item) => (item.kind === "call" ? [item.state] : []));
  expect(states).toEqual(["done", "denied"]);
});

test("errors, images, resources and long results reach the model in the forms of the agent's own tools", async () => {
  await using stage = new Stage();
  const servers = await started({ test: setting() });
  const steps = [
    [
      call("c1", "mcp__test__things"),
      call("c2", "mcp__test__fail", { text: "it went wrong" }),
      call("c3", "mcp__test__long", { chars: 200_000 }),
      call("c4", "mcp__test__refuse"),
    ],
    [text("done")],
  ];
  const config = { allow: ["mcp__test"] };
  const chat = await stage.chat(steps, { servers, config, provider: "anthropic" });
  await chat.prompt("go");
  await chat.settled();
  const results = chat.model.prompts
    .at(-1)!
    .flatMap(({ role, content }) => (role === "tool" ? content : []))
    .map((part) => (part.type === "tool-result" ? part : null)!);
  const output = (id: string) => results.find(({ toolCallId }) => toolCallId === id)!.output;
  const { value: things } = output("c1") as { value: { type: string; text?: string; mediaType?: string }[] };
  expect(things.map(({ type }) => type)).toEqual(["text", "file"]);
  expect(things[0]!.text).toContain("a picture:");
  expect(things[0]!.text).toContain("[Resource file:///a.txt]\nthe text of a");
  expect(things[1]).toMatchObject({ mediaType: "image/png" });
  expect(JSON.stringify(things[1])).toContain(PNG);
  expect(output("c2")).toEqual({ type: "error-text", value: "Error: it went wrong" });
  const long = (output("c3") as { value: string }).value;
  expect(long.length).toBeLessThan(34_000);
  expect(long).toMatch(/end$/);
  const saved = /the full result is in (\S+)\]/.exec(long)![1]!;
  expect(readFileSync(saved, "utf8")).toHaveLength(200_003);
  expect((output("c4") as { value: string }).value).toMatch(/The MCP server "test" reports: .*the arguments are wrong/);
  // The journal holds the picture once.
  expect(journalOf(stage).split(PNG).length - 1).toBe(1);
});

test("kill -9 of a server in the middle of a call: the outcome is unknown, it is restarted, and the next call works", async () => {
  await using stage = new Stage();
  const file = join(folder(), "calls");
  const servers = await started({ test: setting() });
  const steps = [
    [call("c1", "mcp__test__wait", { file })],
    [call("c2", "mcp__test__echo", { text: "alive" })],
    [text("done")],
  ];
  const chat = await stage.chat(steps, { servers, config: { allow: ["mcp__test"] } });
  await chat.prompt("go");
  process.kill(await pidIn(file), "SIGKILL");
  await chat.settled();
  const outputs = chat.state.items.flatMap((item) => (item.kind === "call" ? [[item.state, item.output]] : []));
  expect(outputs).toEqual([
    [
      "failed",
      'Error: Started, then the MCP server "test" stopped (it was killed by SIGKILL): outcome unknown. It may have taken effect: check before repeating it.',
    ],
    ["done", "alive"],
  ]);
  expect(readFileSync(file, "utf8").trim().split("\n")).toHaveLength(1);
});

test("a server that keeps dying is restarted a few times, then left alone; the calls say that they did not run", async () => {
  const servers = start({ test: setting() }, { backOffMs: [1, 1], retryMs: 60_000 });
  await servers.settled();
  const die = tool(servers, "mcp__test__die");
  for (let n = 0; n < 3; n++)
    await expect(servers.call(die, {}, {})).rejects.toThrow(/^Started, then .*outcome unknown/);
  await until(() => servers.reports[0]!.state === "failed");
  expect(servers.takeWarnings()).toEqual([expect.stringContaining('"test" keeps stopping: it was killed by SIGKILL')]);
  expect(servers.tools.flat()).toEqual([]);
  await expect(servers.call(die, {}, {})).rejects.toThrow(
    'Not run: the MCP server "test" is not available (it was killed by SIGKILL). The call never started: it is safe to run it.',
  );
});

test("a call that succeeds starts the count of restarts again", async () => {
  const servers = start({ test: setting() }, { backOffMs: [1] });
  await servers.settled();
  for (let n = 0; n < 3; n++) {
    await expect(ask(servers, "mcp__test__die")).rejects.toThrow(/outcome unknown/);
    expect(textIn(await ask(servers, "mcp__test__echo", { text: "back" }))).toBe("back");
  }
});

test("a server that does not start is tried again at a later turn, and does not keep the others from working", async () => {
  const mark = join(folder(), "mark");
  const servers = start({
    late: setting(["dies-once", mark]),
    quits: setting(["quits"]),
    good: setting(),
    none: setting([], { command: "/no/such/program" } as never),
  });
  await servers.ready(undefined, 100_000);
  const states = () => Object.fromEntries(servers.reports.map(({ name, state }) => [name, state]));
  expect(states()).toEqual({ late: "failed", quits: "failed", good: "ready", none: "failed" });
  const warnings = servers.takeWarnings().join("\n");
  expect(warnings).toContain('"late" is not available: it ended with exit status 9.');
  expect(warnings).toContain('"quits" is not available: it ended with exit status 3: no key was given.');
  expect(warnings).toMatch(/"none" is not available: it ended with exit status 127: .*no\/such\/program/);
  await servers.ready();
  await servers.settled();
  expect(states()).toMatchObject({ late: "ready", quits: "failed", good: "ready" });
});

test("a server that never answers does not hold up a turn", async () => {
  const servers = start({ silent: setting(["silent"]) }, { startMs: 300, retryMs: 60_000 });
  await servers.ready(undefined, 1);
  expect(servers.takeWarnings().join()).toContain('Not ready yet: MCP server "silent"');
  await servers.settled();
  expect(servers.reports[0]).toMatchObject({ state: "failed", why: "it did not answer within 0.3 s" });
});

test("a call that is never answered ends; a server that is alive stays, one that hangs is restarted", async () => {
  const file = join(folder(), "calls");
  const servers = start(
    { slow: setting([], { timeoutSeconds: 0.2 }), frozen: setting([], { timeoutSeconds: 0.2 }) },
    { pingMs: 5000 },
  );
  await servers.settled();
  await expect(ask(servers, "mcp__slow__wait", { file })).rejects.toThrow(
    'Started, then the MCP server "slow" gave no answer for 0.2 s: outcome unknown. It may have taken effect: check before repeating it.',
  );
  await expect(ask(servers, "mcp__frozen__freeze")).rejects.toThrow(/gave no answer for 0.2 s: outcome unknown/);
  for (const name of ["slow", "frozen"])
    await until(async () => {
      const said = await ask(servers, `mcp__${name}__echo`, { text: "here" }).catch(() => null);
      return said !== null && textIn(said) === "here";
    });
});

test("garbage, a greeting on the wrong stream, and sixteen megabytes of errors", async () => {
  const servers = start({ garbage: setting(["garbage"]), noise: setting(["noise"]), flood: setting(["flood"]) });
  await servers.settled();
  const states = Object.fromEntries(servers.reports.map(({ name, state, why }) => [name, why ?? state]));
  expect(states).toEqual({ garbage: "it does not speak the MCP protocol", noise: "ready", flood: "ready" });
  expect(textIn(await ask(servers, "mcp__flood__echo", { text: "x" }))).toBe("x");
});

test("ten thousand tools, and names with control characters: what fits is offered, the rest is said", async () => {
  const servers = start({ many: setting(["many"]), hostile: setting(["hostile"]) });
  await servers.settled();
  const names = servers.tools.flat().map(({ name }) => name);
  expect(names.filter((name) => name.startsWith("mcp__many__"))).toHaveLength(120);
  for (const name of names) expect(name).toMatch(/^mcp__(many|hostile)__[A-Za-z0-9_-]+$/);
  const warnings = servers.takeWarnings().join("\n");
  expect(warnings).toContain("9880 of 10000 tools left out");
  expect(warnings.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  await using stage = new Stage();
  const chat = await stage.chat([[text("done")]], { servers, windowTokens: 8000 });
  await chat.prompt("go");
  await chat.settled();
  const offered = chat.model.doStreamCalls[0]!.tools!;
  expect(offered.length).toBeGreaterThan(20);
  expect(JSON.stringify(offered.filter(({ name }) => name.startsWith("mcp__"))).length).toBeLessThan(8000 * 2);
});

test("a server sees no keys but its own, and runs in the user's home, not in the working folder", async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written.
  const servers = start({ test: setting(["normal", "${SECRET}"], { env: { MINE: "${SECRET}" } }) });
  await servers.settled();
  const { env, cwd, args } = JSON.parse(textIn(await ask(servers, "mcp__test__environment")));
  expect(env.MINE).toBe("s3cret");
  expect(Object.keys(env)).not.toContain("SECRET");
  expect(cwd).toBe(homedir());
  expect(args).toEqual(["normal", "s3cret"]);
});

test("servers end with the agent, also one that ignores the end of its input and SIGTERM", async () => {
  const file = join(folder(), "calls");
  const servers = start({ deaf: setting(["deaf"]), test: setting() });
  await servers.settled();
  const open = ["deaf", "test"].map((name) =>
    ask(servers, `mcp__${name}__wait`, { file: `${file}-${name}` }).catch((error: Error) => error.message),
  );
  const pids: number[] = [];
  for (const name of ["deaf", "test"]) pids.push(await pidIn(`${file}-${name}`));
  await servers.close();
  for (const pid of pids) expect(await identify(pid)).toBeNull();
  for (const said of await Promise.all(open)) expect(said).toMatch(/outcome unknown/);
});

test("a call that was approved after a restart, when its server is gone, did not run, and the turn goes on", async () => {
  await using stage = new Stage();
  const file = join(folder(), "calls");
  const asking = await stage.chat([[call("c1", "mcp__test__count", { file })]], {
    asks: "person",
    servers: await started({ test: setting() }),
  });
  await asking.prompt("go");
  await asking.settled();
  expect(asking.state.asks).toHaveLength(1);
  await asking.close();
  const chat = await stage.chat([[text("done")]], { asks: "person", id: asking.id });
  expect(chat.state.asks).toHaveLength(1);
  await chat.answer("c1", "allow");
  await chat.settled();
  const [item] = chat.state.items.filter(({ kind }) => kind === "call");
  expect(item).toMatchObject({ state: "failed", output: expect.stringMatching(/^Error: Not run: .*safe to run it/) });
  expect(chat.state.status).toBe("idle");
  expect(existsSync(file)).toBe(false);
});

test("a stopped call is cancelled, and the model is told that it may have taken effect", async () => {
  await using stage = new Stage();
  const file = join(folder(), "calls");
  const servers = await started({ test: setting() });
  const chat = await stage.chat([[call("c1", "mcp__test__wait", { file })]], {
    servers,
    config: { allow: ["mcp__*"] },
  });
  await chat.prompt("go");
  await pidIn(file);
  await chat.stop();
  await chat.settled();
  const [item] = chat.state.items.filter(({ kind }) => kind === "call");
  expect(item).toMatchObject({ output: expect.stringContaining("it may have taken effect") });
  writeFileSync(`${file}.go`, "");
  expect(textIn(await ask(servers, "mcp__test__echo", { text: "fine" }))).toBe("fine");
});

/** A server that is reached by HTTP, in this process. */
async function remote(port = 0): Promise<{ readonly port: number; readonly seen: string[]; stop(): Promise<void> }> {
  const seen: string[] = [];
  const http = createServer(async (request, response) => {
    seen.push(String(request.headers["authorization"]));
    if (request.method !== "POST") return void response.writeHead(405).end();
    const server = new Server({ name: "remote", version: "1" }, { capabilities: { tools: {} } });
    const tools = ["echo", "hang"].map((name) => ({ name, inputSchema: { type: "object" as const } }));
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }) =>
      params.name === "hang"
        ? new Promise<never>(() => void seen.push("hanging"))
        : { content: [{ type: "text", text: String(params.arguments?.["text"]) }] },
    );
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined } as never);
    await server.connect(transport as never);
    await transport.handleRequest(request, response);
  });
  http.listen(port, "127.0.0.1");
  await once(http, "listening");
  const stop = async (): Promise<void> => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  onTestFinished(() => void stop().catch(() => {}));
  return { port: (http.address() as AddressInfo).port, seen, stop };
}

test("a server by HTTP: its header, a call, its end in the middle of a call, and its return", async () => {
  const first = await remote();
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written.
  const headers = { Authorization: "Bearer ${SECRET}" };
  const url = `http://127.0.0.1:${first.port}/mcp`;
  const servers = start({ far: { url, headers, timeoutSeconds: 3600, enabled: true } }, { backOffMs: [1, 1] });
  await servers.settled();
  expect(servers.reports[0]).toMatchObject({ state: "ready", why: null });
  expect(textIn(await ask(servers, "mcp__far__echo", { text: "hello" }))).toBe("hello");
  expect(first.seen.every((one) => one === "Bearer s3cret")).toBe(true);
  const hanging = ask(servers, "mcp__far__hang").catch((error: Error) => error.message);
  await until(() => first.seen.includes("hanging"));
  const { name, ...rest } = tool(servers, "mcp__far__echo");
  await first.stop();
  expect(await hanging).toMatch(
    /^Started, then .*: outcome unknown\. It may have taken effect: check before repeating it\.$/,
  );
  await until(() => servers.reports[0]!.state === "failed");
  await expect(servers.call({ name, ...rest }, { text: "x" }, {})).rejects.toThrow(/^Not run: .*safe to run it/);
  await remote(first.port);
  await servers.ready();
  await servers.settled();
  expect(textIn(await ask(servers, "mcp__far__echo", { text: "back" }))).toBe("back");
});
