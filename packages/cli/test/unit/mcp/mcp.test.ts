import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { estimateTokens } from "../../../src/agent/compaction.ts";
import { loadConfig } from "../../../src/config.ts";
import { fitTools, readCatalog, TOOLS_MAX, toolName } from "../../../src/mcp/catalog.ts";
import { readResult } from "../../../src/mcp/read-result.ts";
import { checkServers, expandVariables } from "../../../src/mcp-settings/server-settings.ts";
import { isServerName, serverOfRule } from "../../../src/mcp-settings/tool-names.ts";
import { checkRule, decide } from "../../../src/tools/permission/decide.ts";
import { HOSTILE, PNG } from "../../mcp-server.ts";

describe("names", () => {
  test("a tool has its server's name; what a provider or a screen would refuse is replaced, each differently", () => {
    expect(toolName("github", "create_issue")).toBe("mcp__github__create_issue");
    const odd = [
      "two words",
      "two_words!",
      "two\twords",
      "тwo words",
      "x".repeat(300),
      `${"x".repeat(300)}y`,
      "\u001b[2J",
    ];
    const names = odd.map((tool) => toolName("github", tool));
    expect(new Set(names).size).toBe(odd.length);
    for (const name of names) expect(name).toMatch(/^mcp__github__[A-Za-z0-9_-]{1,51}$/);
    expect(names.map((name) => name.length).every((length) => length <= 64)).toBe(true);
    expect(toolName("a".repeat(32), "é".repeat(100)).length).toBeLessThanOrEqual(64);
  });

  test("a tool's name belongs to one server only", () => {
    for (const good of ["a", "git-hub", "a_b", "A1", "x".repeat(32)]) expect(isServerName(good), good).toBe(true);
    for (const bad of ["", "a__b", "a_", "_a", "-a", "a.b", "a b", "é", "x".repeat(33), "a\n"])
      expect(isServerName(bad), bad).toBe(false);
    expect(serverOfRule("mcp__a___b")).toBe("a");
    expect(serverOfRule("mcp__a_b__c__d")).toBe("a_b");
    for (const bad of ["mcp__", "mcp__a*", "mcp__*__x", "mcp__a__", "mcp___a__b", "read"])
      expect(serverOfRule(bad), bad).toBeNull();
  });
});

describe("rules", () => {
  const verdict = (name: string, policy: { allow?: string[]; ask?: string[]; deny?: string[] }): string =>
    decide({ name, input: {} }, { cwd: "/w", policy: { allow: [], ask: [], deny: [], ...policy } }).verdict;

  test("a server's tool needs approval, whatever the server says; a rule names the tool, some tools, or the server", () => {
    const name = "mcp__github__list_issues";
    expect(verdict(name, {})).toBe("ask");
    for (const rule of [name, "mcp__github", "mcp__github__*", "mcp__github__list_*", "mcp__*", "*"])
      expect(verdict(name, { allow: [rule] }), rule).toBe("allow");
    for (const rule of [
      "mcp__git",
      "mcp__github__list",
      "mcp__GitHub",
      "mcp__github__List_issues",
      "mcp__other",
      "list",
      "shell",
    ])
      expect(verdict(name, { allow: [rule] }), rule).toBe("ask");
    for (const rule of [name, "mcp__github", "mcp__GITHUB", "mcp__github__LIST_*", "mcp__*", "*"])
      expect(verdict(name, { allow: ["*"], deny: [rule] }), rule).toBe("deny");
    expect(verdict("mcp__github2__x", { allow: ["mcp__github"] })).toBe("ask");
    expect(verdict(name, { allow: ["mcp__github"], ask: ["mcp__github__list_*"] })).toBe("ask");
  });

  test("what is suggested allows exactly this tool", () => {
    const { suggestion } = decide(
      { name: "mcp__a__b", input: { path: "/etc/passwd", command: "rm" } },
      { cwd: "/w", policy: { allow: [], ask: [], deny: [] } },
    );
    expect(suggestion).toBe("mcp__a__b");
  });

  test("a rule with brackets, which could never match, is refused; if it denies, it denies the tool", () => {
    for (const rule of ["mcp__a__b(x)", "mcp__a(x)", "task(x)", "mcp__a*", "mcp__*__b"])
      expect(checkRule(rule, "deny", "linux"), rule).toMatch(/not a valid permission rule/);
    for (const rule of ["mcp__a__b", "mcp__a", "mcp__a__*", "mcp__*"])
      expect(checkRule(rule, "deny", "linux")).toBeNull();
    expect(verdict("mcp__a__b", { allow: ["*"], deny: ["mcp__a__b(x)"] })).toBe("deny");
    expect(verdict("task", { allow: ["*"], deny: ["task(x)"] })).toBe("deny");
  });
});

describe("the tools that a server lists", () => {
  const { tools, problems } = readCatalog("s", HOSTILE);
  const names = tools.map(({ name }) => name);

  test("are offered under names that are harmless and unique; the others are left out, and named", () => {
    expect(names.slice(0, 2)).toEqual(["mcp__s__plain", "mcp__s__unions"]);
    expect(names.length).toBe(6);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^mcp__s__[A-Za-z0-9_-]+$/);
    expect(tools.find(({ tool }) => tool === "plain")!.description).toMatch(/^The tool plain\./);
    const words = problems.join("\n");
    expect(words).toContain('"plain" left out: has the same name');
    expect(words).toContain('"odd_member" left out: a member of its input');
    expect(words).toContain('"huge_schema" left out');
    expect(words).toContain('"no_schema" left out');
    const shown = [words, ...tools.map(({ description }) => description)].join("").replaceAll("\n", "");
    expect(shown).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(tools.find(({ tool }) => tool.startsWith("read"))!.description).toBe(
      'Clears the screen, and hides words.\n[A tool of the MCP server "s".]',
    );
    expect(tools.find(({ tool }) => tool === "unions")!.inputSchema).toEqual({ type: "object", properties: {} });
  });

  test("a name that another one is changed into is kept for its owner, in any order", () => {
    const taken = { name: toolName("s", "two words").slice("mcp__s__".length), inputSchema: { type: "object" } };
    const odd = { name: "two words", inputSchema: { type: "object" } };
    for (const list of [
      [taken, odd],
      [odd, taken],
    ])
      expect(readCatalog("s", list).tools.map(({ tool }) => tool)).toEqual([taken.name]);
  });

  test("ten thousand are cut to what models accept, or to those that the user chose", () => {
    const many = Array.from({ length: 10_000 }, (_, n) => ({ name: `t${n}`, inputSchema: { type: "object" } }));
    const all = readCatalog("s", many);
    expect(all.tools.length).toBe(TOOLS_MAX);
    expect(all.problems).toEqual([expect.stringContaining("9880 of 10000 tools left out")]);
    const some = readCatalog("s", many, ["t9999", "gone"]);
    expect(some.tools.map(({ tool }) => tool)).toEqual(["t9999"]);
    expect(some.problems).toEqual(['"gone" left out: is not offered by the server']);
  });

  test("a small window gets some tools of every server", () => {
    const of = (server: string) =>
      readCatalog(
        server,
        Array.from({ length: 50 }, (_, n) => ({ name: `t${n}`, inputSchema: { type: "object" } })),
      ).tools;
    const [a, b] = [of("a"), of("b")];
    const { fitting, leftOut } = fitTools([a, b], 10 * a[0]!.chars);
    const byServer = [a, b].map((tools) => tools.filter((tool) => fitting.has(tool)).length);
    expect(byServer[0]! + byServer[1]! + leftOut).toBe(100);
    expect(byServer.every((count) => count >= 4)).toBe(true);
  });
});

describe("results", () => {
  const content = [
    { type: "text", text: "one\0" },
    { type: "image", mimeType: "image/webp", data: PNG },
    { type: "image", mimeType: "image/png", data: "bm90IGEgcGljdHVyZQ==" },
    { type: "image", mimeType: "image/png", data: "A".repeat(6 * 1024 * 1024) },
    { type: "audio", mimeType: "audio/wav", data: "AAAA" },
    { type: "resource", resource: { uri: "file:///a", text: "text of a" } },
    { type: "resource", resource: { uri: "file:///b", blob: PNG } },
    { type: "resource_link", uri: "file:///c", name: "c" },
    { type: "hologram" },
    "nothing",
  ];

  test("an image is called what its bytes are; one that a provider would refuse is described", () => {
    const { text, images, isError } = readResult({ content }, true);
    expect(images).toEqual([
      { mediaType: "image/png", data: PNG },
      { mediaType: "image/png", data: PNG },
    ]);
    expect(isError).toBe(false);
    expect(text).toContain("one\uFFFD");
    expect(text).toContain("[Resource file:///a]\ntext of a");
    expect(text).toContain("left out, not an image that models accept");
    expect(text).toContain("left out, larger than models accept");
    expect(text).toContain("Audio (audio/wav): left out");
    expect(text).toContain("A link to the resource c: file:///c");
    expect(text).toContain('unknown type "hologram"');
  });

  test("a model that cannot see is told so", () => {
    const { text, images } = readResult({ content: content.slice(0, 2) }, false);
    expect(images).toEqual([]);
    expect(text).toMatch(/An image \(image\/webp\), about \d+ bytes: left out, this model's tools return text only/);
  });

  test.each([
    [{ structuredContent: { a: 1 } }, '{"a":1}'],
    [{ content: [], structuredContent: { a: 1 } }, '{"a":1}'],
    [{ content: [{ type: "text", text: "x" }], structuredContent: { a: 1 } }, "x"],
    [{}, "[no output]"],
    [{ content: "nonsense" }, "[no output]"],
  ])("%j", (given, text) => expect(readResult(given, true).text).toBe(text));

  test("an image fills the window by what it costs, not by its bytes; a long text by its length", () => {
    const message = (output: object): object => ({ role: "tool", content: [{ type: "tool-result", output }] });
    const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "A".repeat(4_000_000) } };
    expect(estimateTokens([message({ type: "content", value: [file] })])).toBeLessThan(2000);
    expect(estimateTokens([message({ type: "json", value: { data: "A".repeat(400_000) } })])).toBeGreaterThan(100_000);
  });

  test("isError", () => expect(readResult({ content: [], isError: true }, true).isError).toBe(true));
});

describe("configuration", () => {
  const check = (given: unknown) => checkServers(given, "f", "linux", (why) => new Error(why));

  test("the form that other agents use", () => {
    expect(
      check({
        a: { command: "npx", args: ["-y", "x"], env: { K: "v" } },
        b: { type: "http", url: "https://x/mcp", headers: { A: "b" }, tools: ["t"], timeoutSeconds: 5, enabled: false },
      }),
    ).toEqual({
      a: { command: "npx", args: ["-y", "x"], env: { K: "v" }, timeoutSeconds: 120, enabled: true },
      b: { url: "https://x/mcp", headers: { A: "b" }, tools: ["t"], timeoutSeconds: 5, enabled: false },
    });
  });

  test.each([
    [[], /must be an object/],
    [{ a__b: { command: "x" } }, /not a name for a server/],
    [{ "a\u001b": { command: "x" } }, /not a name for a server/],
    [{ a: { command: "x" }, A: { command: "x" } }, /differ only in case/],
    [{ a: {} }, /either "command" or "url"/],
    [{ a: { command: "x", url: "https://x" } }, /either "command" or "url"/],
    [{ a: { type: "sse", url: "https://x" } }, /"type" must be "http"/],
    [{ a: { command: "x", comand: 1 } }, /unknown setting "comand"/],
    [{ a: { command: "x", args: "y" } }, /"args" must be a list/],
    [{ a: { command: "x", env: { K: 1 } } }, /"env" must be an object of strings/],
    [{ a: { command: "x", cwd: "here" } }, /"cwd" must be an absolute path/],
    [{ a: { url: "file:///x" } }, /must start with http/],
    [{ a: { command: "x", timeoutSeconds: 0 } }, /"timeoutSeconds"/],
  ])("%j is said", (given, words) => expect(() => check(given)).toThrow(words));

  test("a key that is wrong is not repeated", () => {
    expect(() => check({ a: { command: "x", env: { KEY: ["secret"] } } })).not.toThrow(/secret/);
  });

  test("variables keep keys out of the file; a missing one is named", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written.
    expect(expandVariables("Bearer ${T} ${U:-none} $T ${T", { T: "t" })).toBe("Bearer t none $T ${T");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written.
    expect(() => expandVariables("${NOPE}", {})).toThrow("NOPE is not set");
  });

  test("a file that others can change cannot name programs to run", () => {
    if (process.getuid === undefined) return void console.log("not run: this system has no owners of files");
    const folder = mkdtempSync(join(tmpdir(), "holdfast-mcp-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "config.json");
    const load = (): unknown =>
      loadConfig({}, { env: { HOLDFAST_CONFIG: path }, platform: "linux", home: () => folder });
    writeFileSync(path, JSON.stringify({ mcpServers: { a: { command: "x" } } }));
    for (const mode of [0o644, 0o600, 0o660]) {
      chmodSync(path, mode);
      expect(load, mode.toString(8)).not.toThrow();
    }
    for (const mode of [0o666, 0o602, 0o646]) {
      chmodSync(path, mode);
      expect(load, mode.toString(8)).toThrow(/names programs to run .* is writable by other users/);
    }
    writeFileSync(path, JSON.stringify({ model: "offline" }));
    expect(load).not.toThrow();
  });

  test("neither the environment nor a flag can name a server", () => {
    const env = { HOLDFAST_CONFIG: "", HOLDFAST_MCP_SERVERS: '{"a":{"command":"x"}}', mcpServers: "{}" };
    const config = loadConfig({ mcpServers: { a: { command: "x" } } }, { env, platform: "linux", home: () => "/h" });
    expect(config.mcpServers).toEqual({});
  });
});
