import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "jsonc-parser";
import { describe, expect, test } from "vitest";
import { addAgent, unwrapAgents, wrapAgents } from "../../../src/editors/agent-entries.ts";
import { readSettings, settingsPath, writeSettings } from "../../../src/editors/settings-file.ts";

const launch = { command: "/usr/bin/node", args: ["/opt/holdfast"], flags: [] };
const agents = (text: string) => parse(text, [], { allowTrailingComma: true }).agent_servers;

const LAYOUTS: readonly [string, string][] = [
  ["one line", '{ "agent_servers": { "G": { "command": "gemini", "args": ["--acp"] } } }'],
  ["without arguments", '{"agent_servers":{"G":{"command":"gemini"}}}'],
  [
    "without arguments, with what follows",
    '{ "agent_servers": { "G": { "command": "gemini", "env": { "A": "1" } } } }',
  ],
  [
    "Zed, with comments and trailing commas",
    `// Zed settings
{
  "theme": "One Dark", // mine
  "agent_servers": {
    /* the agent of the house */
    "My \\"own\\" agent": {
      "type": "custom",
      "command": "C:\\\\agents\\\\gemini.exe", // on Windows
      "args": [
        // the flag
        "--acp",
        "--model=x",
      ],
      "env": { "KEY": "value", },
    },
  },
  "tab_size": 2,
}
`,
  ],
  ["tabs and CRLF", '{\r\n\t"agent_servers": {\r\n\t\t"G": {\r\n\t\t\t"command": "gemini"\r\n\t\t}\r\n\t}\r\n}\r\n'],
  ["args before command", '{"agent_servers": {"G": {"args": ["--acp"], "env": {}, "command": "gemini"}}}'],
  [
    "several",
    '{"agent_servers": {"A": {"command": "a", "args": ["x"]}, "B": {"command": "b", "args": ["y", "--", "wrap"]}}}',
  ],
];

describe("wrap and unwrap", () => {
  test.each(LAYOUTS)("%s: only the command changes, and comes back exactly", (_, text) => {
    const wrapped = wrapAgents(text, launch, null);
    const [before, after] = [agents(text), agents(wrapped.text)];
    expect(wrapped.changed).toEqual(Object.keys(before));
    for (const [name, { command, args = [], ...rest }] of Object.entries<Record<string, never>>(before))
      expect(after[name]).toEqual({
        ...rest,
        command: launch.command,
        args: [...launch.args, "wrap", "--", command, ...(args as string[])],
      });
    expect(unwrapAgents(wrapped.text, null).text).toBe(text);
    expect(wrapAgents(wrapped.text, launch, null)).toMatchObject({ text: wrapped.text, changed: [] });
  });

  test("an empty list of arguments is filled; afterwards the agent has no arguments again", () => {
    const { text } = wrapAgents('{"agent_servers":{"G":{"command":"g","env":{},"args":[]}}}', launch, null);
    expect(agents(text).G.args).toEqual(["/opt/holdfast", "wrap", "--", "g"]);
    expect(agents(unwrapAgents(text, null).text).G).toEqual({ command: "g", env: {}, args: [] });
  });

  test("what the user has changed since stays: another argument, another agent, an option of wrap", () => {
    const text = `{"agent_servers": {
      "G": {"command": "holdfast", "args": ["wrap", "--store", "/s", "--", "gemini", "--acp", "--new"], "env": {"A": "2"}},
      "N": {"command": "new"}
    }}`;
    const change = unwrapAgents(text, null);
    expect(change).toMatchObject({ changed: ["G"], kept: [{ name: "N" }] });
    expect(agents(change.text)).toEqual({
      G: { command: "gemini", args: ["--acp", "--new"], env: { A: "2" } },
      N: { command: "new" },
    });
  });

  test("one agent by its name", () => {
    const text = '{"agent_servers": {"A": {"command": "a"}, "B": {"command": "b"}}}';
    const { changed, text: after } = wrapAgents(text, launch, "B");
    expect(changed).toEqual(["B"]);
    expect(agents(after).A).toEqual({ command: "a" });
    expect(() => wrapAgents(text, launch, "C")).toThrow('no agent "C": "A", "B"');
  });

  test.each([
    ['{"type": "registry"}', "from its registry"],
    ['{"env": {}}', "it has no command"],
    ['{"command": {"path": "x"}}', "it has no command"],
    ['{"command": "x", "args": [1]}', "it has no command"],
    ['{"command": "holdfast", "args": ["acp"]}', "Holdfast's own agent"],
    ['{"command": "/bin/holdfast", "args": ["wrap", "--", "x"]}', "wrapped already"],
    ["null", "it has no command"],
  ])("%s stays as it is, and the reason is given", (entry, why) => {
    const text = `{"agent_servers": {"X": ${entry}}}`;
    const change = wrapAgents(text, launch, null);
    expect(change.text).toBe(text);
    expect(change.kept[0]!.why).toContain(why);
  });

  test.each(["{", '{"agent_servers": []}', "[]", '{"agent_servers": {"A": {"command": "a" "args": []}}}'])(
    "%s is refused, and nothing is guessed",
    (text) => expect(() => wrapAgents(text, launch, null)).toThrow("Nothing was changed"),
  );

  test.each(["", "// nothing yet\n", "{}", '{"theme": "x"}'])("%j has no agents", (text) =>
    expect(wrapAgents(text, launch, null)).toEqual({ text, changed: [], kept: [] }),
  );
});

test.each(["", "// mine\n", "{}", '{\n  // mine\n  "theme": "x",\n}\n', '{"agent_servers": {"A": {"command": "a"}}}'])(
  "an agent is added to %j, and what was there stays",
  (text) => {
    const change = addAgent(text, launch, { name: "Gemini", command: ["gemini", "--acp"], isTyped: true });
    expect(agents(change.text).Gemini).toEqual({
      type: "custom",
      command: "/usr/bin/node",
      args: ["/opt/holdfast", "wrap", "--", "gemini", "--acp"],
    });
    if (text.includes("// mine")) expect(change.text).toContain("// mine");
    if (text.includes('"A"')) expect(agents(change.text).A).toEqual({ command: "a" });
    expect(agents(unwrapAgents(change.text, null).text).Gemini).toMatchObject({ command: "gemini", args: ["--acp"] });
    expect(() => addAgent(change.text, launch, { name: "Gemini", command: ["x"], isTyped: true })).toThrow(
      "already an agent",
    );
  },
);

test("settings that another program has changed since they were read are not overwritten; a copy is never replaced", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-settings-"));
  try {
    const path = join(folder, "settings.json");
    const now = new Date("2026-11-16T12:00:00Z");
    writeFileSync(path, "{}");
    const found = readSettings(path);
    writeFileSync(path, '{"theme": "new"}');
    expect(() => writeSettings(found, "{ }", now)).toThrow("changed by another program");
    expect([readFileSync(path, "utf8"), readdirSync(folder)]).toEqual(['{"theme": "new"}', ["settings.json"]]);
    const copies = ["{ }", "{  }"].map((text) => writeSettings(readSettings(path), text, now));
    expect(copies.map((copy) => readFileSync(copy!, "utf8"))).toEqual(['{"theme": "new"}', "{ }"]);
    expect(writeSettings(readSettings(join(folder, "none", "acp.json")), "{}", now)).toBeNull();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the settings are where the editors look for them", () => {
  const path = (editor: "zed" | "jetbrains", platform: NodeJS.Platform, env: NodeJS.ProcessEnv = {}) =>
    settingsPath(editor, env, platform, "/home/u").replaceAll("\\", "/");
  expect(path("jetbrains", "linux")).toBe("/home/u/.jetbrains/acp.json");
  expect(path("zed", "linux")).toBe("/home/u/.config/zed/settings.json");
  expect(path("zed", "linux", { XDG_CONFIG_HOME: "/x" })).toBe("/x/zed/settings.json");
  expect(path("zed", "darwin", { XDG_CONFIG_HOME: "/x" })).toBe("/home/u/.config/zed/settings.json");
  expect(path("zed", "win32", { APPDATA: "/r" })).toBe("/r/Zed/settings.json");
  expect(() => settingsPath("zed", {}, "linux", null)).toThrow("--file");
});
