import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { secretHider, shownServer } from "../../../src/mcp/hide-secrets.ts";
import { McpServers } from "../../../src/mcp/servers.ts";
import type { ServerSettings } from "../../../src/mcp-settings/server-settings.ts";

/** The keys of a server's settings reach no message, table, result or event. */

const common = { timeoutSeconds: 60, enabled: true };
const program = join(import.meta.dirname, "../../mcp-server.ts");

type Answer = (request: IncomingMessage, body: string, response: ServerResponse) => void;

async function httpServer(answer: Answer): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => answer(request, body, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function started(settings: ServerSettings, variables: Record<string, string> = {}): McpServers {
  const servers = new McpServers({ s: settings }, { version: "0", env: { PATH: process.env["PATH"] }, variables });
  onTestFinished(() => servers.close());
  return servers;
}

const json = (response: ServerResponse, value: unknown): void => {
  response.setHeader("content-type", "application/json").end(JSON.stringify(value));
};

/** Says back everything that it was sent. */
const echoing: Answer = (request, body, response) => {
  const said = `refused ${request.url} ${JSON.stringify(request.headers)}`;
  const { id, method } = JSON.parse(body || "{}") as { id?: number; method?: string };
  if (method === "initialize") {
    const result = {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "x", version: "1" },
    };
    json(response, { jsonrpc: "2.0", id, result });
  } else if (method === "tools/list") {
    const schema = { type: "object", properties: { x: { type: "string", description: said } } };
    const tools = [
      { name: "t", description: said, inputSchema: schema },
      { name: `odd`, description: said, inputSchema: { type: "string" } },
    ];
    json(response, { jsonrpc: "2.0", id, result: { tools } });
  } else if (method === "tools/call") json(response, { jsonrpc: "2.0", id, error: { code: -32_603, message: said } });
  else response.writeHead(202).end();
};

const variable = (name: string): string => ["$", `{${name}}`].join("");
const TOKEN = ["tok", "9fK2mQ7xLw4Z"].join("-");
const KEY = ["key", "A81kd93mQpLs"].join("-");
const PATH_KEY = ["s", "Zk3fQ81mWq0pLr72"].join("");
const hidden = new RegExp(`${TOKEN}|${KEY}|${PATH_KEY}|${encodeURIComponent(TOKEN)}`, "u");

describe("a server elsewhere that says back what it was sent", () => {
  test("in its tools, its errors and its warnings", async () => {
    const address = await httpServer(echoing);
    const servers = started(
      {
        ...common,
        url: `http://${address}/mcp/${PATH_KEY}/x?api_key=${KEY}&region=eu`,
        headers: { "X-Custom": variable("T") },
      },
      { T: TOKEN },
    );
    await servers.settled();
    const [report] = servers.reports;
    expect(report).toMatchObject({ state: "ready" });
    expect(report!.tools.map(({ tool }) => tool)).toEqual(["t"]);
    expect(JSON.stringify(servers.reports)).toContain("region=eu");
    expect(JSON.stringify(servers.reports)).not.toMatch(hidden);
    const failed = await servers.call(report!.tools[0]!, {}, {}).catch((error: Error) => error.message);
    expect(failed).toContain("refused /mcp/");
    expect(failed).not.toMatch(hidden);
  });

  test("in why it is not available, however long it is", async () => {
    for (const padding of [0, 100, 180, 250, 285, 290, 1900, 1990, 3990]) {
      const address = await httpServer((request, _, response) => {
        response.writeHead(401).end(`${"x".repeat(padding)} ${request.headers.authorization} ${request.url}`);
      });
      const servers = started({
        ...{ ...common, url: `http://${address}/?token=${KEY}` },
        headers: { Authorization: `Bearer ${TOKEN}` },
      });
      await servers.settled();
      const text = JSON.stringify([servers.reports, servers.takeWarnings()]);
      expect(text).toContain('"failed"');
      for (const secret of [TOKEN, KEY])
        for (let chars = 8; chars <= secret.length; chars++)
          expect(text, `${padding}`).not.toContain(secret.slice(0, chars));
    }
  });

  test("an address with a password, which fetch repeats in its error", async () => {
    const servers = started({ ...common, url: "http://me:pw1@127.0.0.1:9/mcp?key=k1", headers: {} });
    await servers.settled();
    const text = JSON.stringify([servers.reports, servers.takeWarnings()]);
    expect(text).toContain('"failed"');
    expect(text).not.toMatch(/pw1|me:|k1/u);
  });
});

describe("a server of this machine", () => {
  const env = { DATABASE_URL: `postgres://app:${KEY}@db/x`, MODE: "fast-mode-1" };
  const args = [program, "normal", `--api-key=${TOKEN}`, "--token", PATH_KEY, "plain-argument-1"];
  const settings = { ...common, command: process.execPath, args, env };

  test("that prints its environment and its arguments", async () => {
    const servers = started(settings);
    await servers.settled();
    const tool = servers.reports[0]!.tools.find(({ tool }) => tool === "environment")!;
    const result = JSON.stringify(await servers.call(tool, {}, {}));
    expect(result).toContain("plain-argument-1");
    expect(result).toContain("fast-mode-1");
    expect(result).not.toMatch(hidden);
  });

  test("that dies with them on its lips, cut anywhere", async () => {
    for (const padding of [0, 150, 190, 195, 2030, 2040, 2045]) {
      const script = `process.stderr.write("x".repeat(${padding}) + " " + process.env.A_TOKEN + "\\n"); process.exit(3)`;
      const servers = started({ ...common, command: process.execPath, args: ["-e", script], env: { A_TOKEN: TOKEN } });
      await servers.settled();
      const text = JSON.stringify([servers.reports, servers.takeWarnings()]);
      expect(text).toContain("it ended with exit status 3");
      for (let chars = 8; chars <= TOKEN.length; chars++) {
        expect(text, `${padding}`).not.toContain(TOKEN.slice(0, chars));
        expect(text, `${padding}`).not.toContain(TOKEN.slice(-chars));
      }
    }
  });
});

describe("how a server is shown", () => {
  test.each([
    [
      ["x", "--api-key=abcd1234efgh"],
      ["x", "--api-key=…"],
    ],
    [
      ["x", "--api-key", "abc"],
      ["x", "--api-key", "…"],
    ],
    [
      ["--token", "abc", "y"],
      ["--token", "…", "y"],
    ],
    [
      ["run", "-e", "GITHUB_TOKEN=abc", "image"],
      ["run", "-e", "GITHUB_TOKEN=…", "image"],
    ],
    [
      ["--header", "Authorization: Bearer abc"],
      ["--header", "Authorization: …"],
    ],
    [["https://u:p@h/x?key=abc&a=b"], ["https://…@h/x?key=…&a=b"]],
    [["postgresql://u:pw@h/db"], ["postgresql://u:…@h/db"]],
    [
      ["--verbose", "-y", "@scope/server", "/home/me/notes"],
      ["--verbose", "-y", "@scope/server", "/home/me/notes"],
    ],
    [
      ["-y", "pkg@1.2.3", "--port", "8080"],
      ["-y", "pkg@1.2.3", "--port", "8080"],
    ],
    [
      ["--api-key", variable("KEY")],
      ["--api-key", variable("KEY")],
    ],
    [[["ghp", "a1B2".repeat(9)].join("_")], ["[redacted:github]"]],
    [
      ["--pat", "abc", "--bearer", "abc", "--path", "abc"],
      ["--pat", "…", "--bearer", "…", "--path", "abc"],
    ],
  ])("arguments %j", (args, shown) => {
    expect(shownServer({ ...common, command: "c", args, env: {} })).toEqual({ command: "c", args: shown });
  });

  test.each([
    ["https://u:p@h/mcp", "https://…@h/mcp"],
    ["https://h/mcp?key=abc&x=y", "https://h/mcp?key=…&x=y"],
    ["https://h/mcp;key=abcdefgh12", "https://h/mcp;key=…"],
    [`https://h/api/${PATH_KEY}/mcp`, "https://h/api/…/mcp"],
    [`https://h/mcp?profile=${PATH_KEY}`, "https://h/mcp?profile=…"],
    ["https://mcp.example.com/v1/projects/my-project/mcp", "https://mcp.example.com/v1/projects/my-project/mcp"],
    [`https://h/mcp?key=${variable("KEY")}`, `https://h/mcp?key=${variable("KEY")}`],
  ])("the address %s", (url, shown) => {
    expect(shownServer({ ...common, url, headers: { A: "b" } })).toEqual({ url: shown });
  });
});

test("a secret is hidden in every form in which it is repeated; other texts stay", () => {
  const secret = 'pa/ss "w0rd';
  const hide = secretHider({ ...common, command: "x", args: [], env: { PASSWORD: secret } }, (text) => text);
  for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])
    expect(hide(`a ${form} b`)).toBe("a … b");
  expect(hide({ [secret]: [secret, 1, null] })).toEqual({ "…": ["…", 1, null] });
  const url = secretHider({ ...common, url: "http://me:s3cr3t-pw@h/", headers: {} }, (text) => text);
  expect(url(`Basic ${Buffer.from("me:s3cr3t-pw").toString("base64")}`)).toBe("Basic …");
  const headers = { Accept: "application/json", Authorization: "Bearer tokentoken" };
  const remote = secretHider({ ...common, url: "http://h/path/to/mcp", headers }, (text) => text);
  expect(remote("application/json at /path/to/mcp: tokentoken")).toBe("application/json at /path/to/mcp: …");
  const parts = {
    Authorization: `Basic ${Buffer.from("me:s3cr3t-pw").toString("base64")}`,
    Cookie: "sid=a1b2c3d4e5; t=z9y8x7w6v5",
  };
  const decoded = secretHider({ ...common, url: "http://h/", headers: parts }, (text) => text);
  expect(decoded("me:s3cr3t-pw, s3cr3t-pw, a1b2c3d4e5 and z9y8x7w6v5")).toBe("…, …, … and …");
  const lines = secretHider(
    { ...common, command: "x", args: [], env: { KEYS: "first-key-1\nsecond-key-2" } },
    (text) => text,
  );
  expect(lines("second-key-2")).toBe("…");
});
