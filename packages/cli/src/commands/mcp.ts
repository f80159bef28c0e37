import { Argument, type Command, Option } from "commander";
import { type Config, configPath, loadConfig } from "../config.ts";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import type { ShownServer } from "../mcp/hide-secrets.ts";
import type { ServerReport } from "../mcp/servers.ts";
import { checkServers } from "../mcp-settings/server-settings.ts";
import { jsonText } from "../terminal/json.ts";
import { plainLine } from "../terminal/plain.ts";
import { tableLines } from "../terminal/table.ts";
import { portOf } from "./arguments.ts";

interface Options {
  readonly env?: readonly string[];
  readonly header?: readonly string[];
  readonly transport?: "stdio" | "http";
  readonly port?: number;
  /** False with --no-redact. */
  readonly redact: boolean;
  readonly json?: true;
}

/** Where `serve` listens: h-o-l-d on the keys of a telephone. */
const PORT = 4653;

export function register(program: Command): void {
  const several = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];
  program
    .command("mcp")
    .summary("list, add and remove MCP servers; serve sessions to other agents")
    .description(
      'Lists your MCP servers and whether they work, shows the tools of one, or adds and removes one. Servers are saved in your configuration file, never in a project. The agent asks before it calls their tools, unless a rule allows it. "serve" is the other direction: an MCP server with which any agent can list, search and read the sessions of this store, and change nothing.',
    )
    .addArgument(
      new Argument("[action]", "what to do").choices(["list", "get", "add", "remove", "serve"]).default("list"),
    )
    .argument("[name]", "for get, add and remove: the server's name")
    .argument("[command...]", "for add: the program that runs the server and its arguments, or the server's URL")
    .option("-e, --env <name=value>", "with add: a variable for the program; repeatable", several)
    .option("-H, --header <name: value>", "with add: an HTTP header for the URL; repeatable", several)
    .addOption(
      new Option("-t, --transport <kind>", "with add and serve: how to reach the server").choices(["stdio", "http"]),
    )
    .option("--port <n>", `with serve over http: the port on 127.0.0.1, 0 for any free one (default: ${PORT})`, portOf)
    .option("--no-redact", "with serve: also show what looks like a key, token or password")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Examples:
  holdfast mcp
  holdfast mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  holdfast mcp add github -e 'GITHUB_TOKEN=\${GITHUB_TOKEN}' -- github-mcp-server stdio
  holdfast mcp add docs https://mcp.example.com/mcp -H 'Authorization: Bearer \${DOCS_TOKEN}'
  holdfast mcp get github
  holdfast mcp remove github
  claude mcp add holdfast -- holdfast mcp serve
  holdfast mcp serve --transport http

Put -- before the program, so that its options are not taken for options of holdfast. \${NAME} is replaced by the
environment variable when the server starts: quote it, and the key itself is not saved.`,
    )
    .action(
      async (
        action: string,
        name: string | undefined,
        words: readonly string[],
        options: Options,
        command: Command,
      ) => {
        assertUsage(action, name, words, options);
        if (action === "serve") await serve(options, command.optsWithGlobals()["store"] as string | undefined);
        else if (action === "add") await add(name!, words, options);
        else if (action === "remove") await remove(name!, options);
        else await show(action === "get" ? name! : null, options);
      },
    );
}

function assertUsage(action: string, name: string | undefined, words: readonly string[], options: Options): void {
  if (action === "serve" && name !== undefined) throw usage("serve takes no name.");
  if (action === "list" && name !== undefined) throw usage(`list takes no name. Use: holdfast mcp get ${name}`);
  if (action !== "list" && action !== "serve" && name === undefined)
    throw usage(`Which server? holdfast mcp ${action} <name>`);
  if (action !== "add" && words.length > 0) throw usage(`${action} takes only a name.`);
  if (action === "add" && words.length === 0)
    throw usage(`What runs the server? holdfast mcp add ${name} -- <program> [arguments], or a URL.`);
  if (action !== "add" && (options.env ?? options.header) !== undefined) throw usage("--env and --header are for add.");
  if (action !== "add" && action !== "serve" && options.transport !== undefined)
    throw usage("--transport is for add and serve.");
  if (options.port !== undefined && !(action === "serve" && options.transport === "http"))
    throw usage("--port is for serve over http: holdfast mcp serve --transport http --port <n>.");
  if (action !== "serve" && !options.redact) throw usage("--no-redact is for serve.");
  if (action === "serve" && options.json) throw usage("serve prints nothing but the protocol.");
}

/** The SDK is loaded only where it is needed. */
async function serve({ transport = "stdio", port = PORT, redact }: Options, store: string | undefined): Promise<void> {
  const { serve } = await import("../mcp-server/serve.ts");
  await serve({ transport, port, redact, ...defined({ store }) });
}

/** As they are written in the file: unset members stay unset. */
function settingsOf(words: readonly string[], { env, header, transport }: Options): Record<string, unknown> {
  const [first = "", ...args] = words;
  const isRemote = transport === "http" || (transport === undefined && /^https?:\/\//i.test(first));
  if (isRemote) {
    if (args.length > 0) throw usage("A URL takes no arguments.");
    if (env) throw usage("--env is for a program. For a URL, use --header.");
    return { type: "http", url: first, ...(header ? { headers: pairs(header, ":", "--header") } : {}) };
  }
  if (header) throw usage("--header is for a URL. For a program, use --env.");
  return {
    command: first,
    ...(args.length > 0 ? { args } : {}),
    ...(env ? { env: pairs(env, "=", "--env") } : {}),
  };
}

function pairs(given: readonly string[], sign: string, option: string): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf(sign);
      if (at < 1) throw usage(`${option} must be given as name${sign}value.`);
      const value = text.slice(at + 1);
      return [text.slice(0, at).trim(), sign === ":" ? value.trim() : value];
    }),
  );
}

async function add(name: string, words: readonly string[], options: Options): Promise<void> {
  const settings = settingsOf(words, options);
  checkServers({ [name]: settings }, "The server", process.platform, (why) => usage(why));
  const path = pathToEdit();
  const { editServers } = await import("../mcp-settings/edit-file.ts");
  editServers(path, (servers) => {
    const taken = Object.keys(servers).find((one) => one.toLowerCase() === name.toLowerCase());
    if (taken !== undefined)
      throw new CommandError(
        EXIT.usage,
        "MCP_SERVER_EXISTS",
        `There is already an MCP server named "${taken}". Nothing was changed. Remove it first: holdfast mcp remove ${taken}`,
      );
    return { ...servers, [name]: settings };
  });
  if (options.json) process.stdout.write(`${jsonText({ action: "add", name, file: path })}\n`);
  else process.stdout.write(`Added "${name}" to ${plainLine(path)}. To try it: holdfast mcp get ${name}\n`);
}

async function remove(name: string, options: Options): Promise<void> {
  const path = pathToEdit();
  const { editServers } = await import("../mcp-settings/edit-file.ts");
  editServers(path, (servers) => {
    if (!Object.hasOwn(servers, name)) throw unknownServer(name, Object.keys(servers));
    return Object.fromEntries(Object.entries(servers).filter(([one]) => one !== name));
  });
  if (options.json) process.stdout.write(`${jsonText({ action: "remove", name, file: path })}\n`);
  else process.stdout.write(`Removed "${plainLine(name)}" from ${plainLine(path)}.\n`);
}

function pathToEdit(): string {
  const path = configPath();
  if (path === null) throw usage("This user has no configuration file: HOLDFAST_CONFIG is empty, or there is no home.");
  // A fault elsewhere in the file is reported before anything is written.
  loadConfig();
  return path;
}

/** Starts the servers to see whether they work, and ends them. */
async function show(name: string | null, options: Options): Promise<void> {
  const config = loadConfig();
  const all = Object.keys(config.mcpServers);
  if (name !== null && !Object.hasOwn(config.mcpServers, name)) throw unknownServer(name, all);
  if (all.length === 0) {
    if (!options.json) process.stdout.write("No MCP servers. To add one: holdfast mcp add <name> -- <program>\n");
    return;
  }
  const chosen = name === null ? all : [name];
  const reports = await check(config, chosen);
  const isWorking = reports.every(({ state }) => state === "ready" || state === "disabled");
  if (!isWorking) process.exitCode = EXIT.failed;
  const { shownServer } = await import("../mcp/hide-secrets.ts");
  const rows = reports.map((report) => ({ report, shown: shownServer(config.mcpServers[report.name]!) }));
  if (options.json) {
    for (const row of rows) process.stdout.write(`${jsonText(jsonOf(row))}\n`);
    return;
  }
  const lines = name === null ? listLines(rows) : serverLines(rows[0]!);
  process.stdout.write(`${lines.join("\n")}\n`);
}

async function check(config: Config, names: readonly string[]): Promise<readonly ServerReport[]> {
  const [{ McpServers }, { commandEnvironment }, { endProcesses }, { version }] = await Promise.all([
    import("../mcp/servers.ts"),
    import("../tools/shell/environment.ts"),
    import("../tools/shell/surviving-commands.ts"),
    import("../version.ts"),
  ]);
  const chosen = Object.fromEntries(names.map((name) => [name, config.mcpServers[name]!]));
  const env = commandEnvironment(process.env, config.passEnv);
  const servers = new McpServers(chosen, { version, env, variables: process.env });
  // Ctrl+C does not reach the servers, and must not leave them behind.
  const stop = (signal: NodeJS.Signals): void => {
    void endProcesses().then(() => {
      process.off(signal, stop);
      process.kill(process.pid, signal);
    });
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, stop);
  try {
    await servers.settled();
    const byName = new Map(servers.reports.map((report) => [report.name, report]));
    return names.map((name) => byName.get(name)!);
  } finally {
    await servers.close();
    for (const signal of signals) process.off(signal, stop);
  }
}

interface Row {
  readonly report: ServerReport;
  readonly shown: ShownServer;
}

function listLines(rows: readonly Row[]): string[] {
  const columns = [
    { title: "server" },
    { title: "state" },
    { title: "tools", align: "right" as const },
    { title: "runs", shrinksTo: 24 },
  ];
  const cells = rows.map(({ report: { name, state, tools }, shown }) => [
    name,
    state,
    state === "ready" ? String(tools.length) : "",
    runsWords(shown),
  ]);
  const notes = rows.flatMap(({ report }) => noteLines(report));
  return [...tableLines(columns, cells, process.stdout.columns), ...(notes.length > 0 ? ["", ...notes] : [])];
}

function noteLines({ name, why, problems }: ServerReport): string[] {
  return [...(why === null ? [] : [why]), ...problems].map((text) => `${name}: ${plainLine(text)}.`);
}

function serverLines({ report, shown }: Row): string[] {
  const { name, state, tools } = report;
  const first = (text: string): string => plainLine(text.split("\n", 1)[0]!);
  return [
    `server: ${name}`,
    `state:  ${state}`,
    `runs:   ${runsWords(shown)}`,
    ...noteLines(report),
    ...(tools.length === 0 ? [] : ["", "Tools, with the names that rules use:"]),
    ...tools.flatMap(({ name: one, description }) => [`  ${one}`, `    ${first(description)}`]),
  ];
}

function runsWords(shown: ShownServer): string {
  return plainLine("url" in shown ? shown.url : [shown.command, ...shown.args].join(" "));
}

function jsonOf({ report: { name, state, why, tools, problems }, shown }: Row): object {
  return {
    name,
    state,
    why,
    ...shown,
    tools: tools.map(({ name: one, tool, description }) => ({ name: one, tool, description })),
    problems,
  };
}

function unknownServer(name: string, known: readonly string[]): CommandError {
  const have = known.length === 0 ? "There are none." : `There are: ${known.map((one) => plainLine(one)).join(", ")}.`;
  const message = `No MCP server is named "${plainLine(name)}". ${have} Nothing was changed.`;
  return new CommandError(EXIT.usage, "MCP_SERVER_UNKNOWN", message);
}

function usage(message: string): CommandError {
  return new CommandError(EXIT.usage, "USAGE", `${message} Nothing was touched.`);
}
