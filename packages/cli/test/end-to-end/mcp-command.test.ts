import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identify } from "../../src/tools/shell/process-groups.ts";
import { type Home, temporaryHome } from "../command.ts";

const server = join(import.meta.dirname, "../mcp-server.ts");

function configured(home: Home): { readonly file: string; run: Home["run"] } {
  const file = join(home.path, "config", "holdfast", "config.json");
  const env = { HOLDFAST_CONFIG: undefined, XDG_CONFIG_HOME: join(home.path, "config") };
  return { file, run: (args, options = {}) => home.run(args, { ...options, env: { ...env, ...options.env } }) };
}

test("add, list, get and remove", async () => {
  using home = temporaryHome();
  const { file, run } = configured(home);
  expect(await run(["mcp"])).toMatchObject({ code: 0, stdout: expect.stringContaining("No MCP servers.") });
  const add = ["mcp", "add", "test", "-e", "KEY=s3cret", "--", process.execPath, server, "normal"];
  expect(await run(add)).toMatchObject({
    code: 0,
    stdout: `Added "test" to ${file}. To try it: holdfast mcp get test\n`,
  });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
    mcpServers: { test: { command: process.execPath, args: [server, "normal"], env: { KEY: "s3cret" } } },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await run(add)).toMatchObject({ code: 2, stderr: expect.stringContaining("[MCP_SERVER_EXISTS]") });
  await run(["mcp", "add", "quits", "--", process.execPath, server, "quits"]);
  await run(["mcp", "add", "hostile", "--", process.execPath, server, "hostile"]);

  const list = await run(["mcp", "list"]);
  expect(list.code).toBe(1);
  expect(list.stdout).toMatch(/^test +ready +10 +/m);
  expect(list.stdout).toMatch(/^quits +failed /m);
  expect(list.stdout).toContain("quits: it ended with exit status 3: no key was given.");
  expect((list.stdout + list.stderr).replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]|s3cret/u);

  const got = await run(["mcp", "get", "test"]);
  expect(got).toMatchObject({ code: 0, stderr: "" });
  expect(got.stdout).toContain("  mcp__test__echo\n    The tool echo.\n");
  const json = await run(["mcp", "get", "hostile", "--json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({ name: "hostile", state: "ready", why: null });

  expect((await run(["config"])).stdout).not.toContain("s3cret");
  expect((await run(["config", "--json"])).stdout).not.toContain("s3cret");

  expect(await run(["mcp", "remove", "nope"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("[MCP_SERVER_UNKNOWN]"),
  });
  for (const name of ["test", "quits", "hostile"])
    expect(await run(["mcp", "remove", name])).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({});
  expect(existsSync(`${file}.new`)).toBe(false);
});

test("a URL, and what is wrong is said before anything is written", async () => {
  using home = temporaryHome();
  const { file, run } = configured(home);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written.
  const bearer = "Bearer ${T}";
  await run(["mcp", "add", "docs", "https://u:p@localhost:9/mcp", "-H", `Authorization: ${bearer}`]);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
    mcpServers: {
      docs: { type: "http", url: "https://u:p@localhost:9/mcp", headers: { Authorization: bearer } },
    },
  });
  const list = await run(["mcp"]);
  expect(list.stdout).toContain("docs: the environment variable T is not set.");
  expect(list.stdout).not.toContain("u:p");
  const before = readFileSync(file);
  for (const args of [
    ["add"],
    ["add", "x"],
    ["add", "a__b", "--", "x"],
    ["add", "x", "-e", "novalue", "--", "x"],
    ["add", "x", "-H", "A: b", "--", "x"],
    ["add", "x", "https://x", "y"],
    ["list", "x"],
    ["remove", "docs", "x"],
    ["get", "x"],
    ["get", "docs", "-e", "A=b"],
  ]) {
    const ran = await run(["mcp", ...args]);
    expect({ args, code: ran.code }).toEqual({ args, code: 2 });
    expect(ran.stderr).toMatch(/^holdfast: (?:[A-Z-]|list |remove )/);
  }
  expect(readFileSync(file)).toEqual(before);
});

test("keys in an address or in arguments are shown nowhere", async () => {
  using home = temporaryHome();
  const { run } = configured(home);
  await run(["mcp", "add", "docs", "http://me:pw-4711@127.0.0.1:9/mcp?api_key=key-4711"]);
  await run([
    "mcp",
    "add",
    "local",
    "--",
    process.execPath,
    server,
    "quits",
    "--api-key=arg-4711",
    "--token",
    "tok-4711",
  ]);
  for (const args of [
    ["mcp"],
    ["mcp", "get", "docs"],
    ["mcp", "--json"],
    ["mcp", "get", "local", "--json"],
    ["config"],
  ]) {
    const { stdout, stderr } = await run(args);
    expect(stdout, args.join(" ")).toContain(args[0] === "config" ? "mcpServers" : "failed");
    expect(stdout + stderr, args.join(" ")).not.toContain("4711");
  }
  expect((await run(["run", "say hello"])).stderr).not.toContain("4711");
});

test("the rest of the file stays as it is, also behind a link; two changes at once both count", async () => {
  using home = temporaryHome();
  const { file, run } = configured(home);
  const real = join(home.path, "dotfiles.json");
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(real, '\u{feff}{\n\t"model": "offline",\n\t"allow": ["read(**)"]\n}\n');
  symlinkSync(real, file);
  const names = ["a", "b", "c", "d"];
  const ran = await Promise.all(names.map((name) => run(["mcp", "add", name, "--", "program"])));
  expect(ran.map(({ code, stderr }) => ({ code, stderr }))).toEqual(names.map(() => ({ code: 0, stderr: "" })));
  expect(lstatSync(file).isSymbolicLink()).toBe(true);
  const text = readFileSync(real, "utf8");
  const { mcpServers, ...rest } = JSON.parse(text);
  expect(Object.keys(mcpServers).sort()).toEqual(names);
  expect(rest).toEqual({ model: "offline", allow: ["read(**)"] });
  expect(text).toContain('\n\t"model"');
});

test("a file that others can change cannot name programs to run", async () => {
  using home = temporaryHome();
  const { file, run } = configured(home);
  await run(["mcp", "add", "a", "--", "program"]);
  chmodSync(file, 0o666);
  const ran = await run(["mcp"]);
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining("is writable by other users") });
  expect((await run(["run", "hello"])).code).toBe(2);
});

test("a working folder, a repository and a store cannot name a server", async () => {
  using home = temporaryHome();
  const { run } = configured(home);
  const mark = join(home.path, "ran");
  const wanted = { mcpServers: { evil: { command: "sh", args: ["-c", `touch '${mark}'`] } } };
  mkdirSync(join(home.work, ".git"));
  mkdirSync(join(home.work, ".holdfast"));
  mkdirSync(join(home.work, "holdfast"));
  mkdirSync(home.store, { recursive: true });
  for (const name of [".mcp.json", "config.json", ".holdfast/config.json", "holdfast/config.json", "mcp.json"]) {
    writeFileSync(join(home.work, name), JSON.stringify(wanted));
    if (!name.includes("/")) writeFileSync(join(home.store, name), JSON.stringify(wanted));
  }
  expect((await run(["run", "say hello"])).code).toBe(0);
  expect((await run(["mcp"])).stdout).toContain("No MCP servers.");
  expect(existsSync(mark)).toBe(false);
});

test("run: the turn does its work beside servers that fail, says so, and leaves no process behind", async () => {
  using home = temporaryHome();
  const { run } = configured(home);
  const pid = join(home.path, "pid");
  const program = `echo $$ > '${pid}'; exec '${process.execPath}' '${server}' deaf`;
  await run(["mcp", "add", "good", "--", "sh", "-c", program]);
  await run(["mcp", "add", "quits", "--", process.execPath, server, "quits"]);
  await run(["mcp", "add", "garbage", "--", process.execPath, server, "garbage"]);
  const ran = await run(["run", "say hello", "--deny", "mcp__typo__x"]);
  expect(ran.code).toBe(0);
  expect(ran.stderr).toContain(
    'The MCP server "quits" is not available: it ended with exit status 3: no key was given.',
  );
  expect(ran.stderr).toContain('The MCP server "garbage" is not available');
  expect(await identify(Number(readFileSync(pid, "utf8")))).toBeNull();
  expect(ran.stderr).toContain('The rule mcp__typo__x applies to nothing: no MCP server is named "typo".');
});

test("without servers the SDK is not loaded", async () => {
  using home = temporaryHome();
  const { run } = configured(home);
  const packages = join(import.meta.dirname, "../../../../node_modules/@modelcontextprotocol");
  const trace = join(home.path, "loaded.mjs");
  writeFileSync(
    trace,
    `import { registerHooks } from "node:module"; import { appendFileSync } from "node:fs";
registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(join(home.path, "loaded"))}, url + "\\n"); return next(url, context); } });`,
  );
  expect(existsSync(packages)).toBe(true);
  const env = { NODE_OPTIONS: `--import=${trace}` };
  expect((await run(["run", "say hello"], { env })).code).toBe(0);
  const loaded = readFileSync(join(home.path, "loaded"), "utf8");
  expect(loaded).toContain("/node_modules/ai/");
  expect(loaded).not.toContain("modelcontextprotocol");
  renameSync(join(home.path, "loaded"), join(home.path, "before"));
  await run(["mcp", "add", "quits", "--", process.execPath, server, "quits"]);
  await run(["mcp"], { env });
  expect(readFileSync(join(home.path, "loaded"), "utf8")).toContain("modelcontextprotocol");
});
