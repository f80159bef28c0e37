import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { configPath, explainConfig, loadConfig, namedStore, settings } from "../../src/config.ts";

const folder = mkdtempSync(join(tmpdir(), "holdfast-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (content: unknown): string => {
  const path = join(folder, "config.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
};
const around = (env: Record<string, string>) => ({ env, platform: "linux", home: () => "/home/u" });

describe("configuration", () => {
  test("without anything, the offline model and the library's own store", () => {
    expect(loadConfig({}, around({ HOLDFAST_CONFIG: "" }))).toEqual({
      store: undefined,
      model: "offline",
      baseUrl: undefined,
      allow: [],
      ask: [],
      deny: [],
      stores: {},
      mcpServers: {},
      windowTokens: undefined,
      passEnv: [],
      redact: false,
      offlineDelayMs: 15,
      debug: false,
    });
  });

  test("a flag, else the environment, else the file, else the default", () => {
    const env = {
      HOLDFAST_CONFIG: file({ model: "a/file", store: "/file", windowTokens: 1000 }),
      HOLDFAST_MODEL: "a/env",
      HOLDFAST_STORE: "",
    };
    expect(loadConfig({ model: "a/flag" }, around(env)).model).toBe("a/flag");
    expect(loadConfig({}, around(env))).toMatchObject({ model: "a/env", store: "/file", windowTokens: 1000 });
    const from = Object.fromEntries(
      explainConfig({ model: "x" }, around(env)).map((one) => [one.setting.key, one.from]),
    );
    expect(from).toMatchObject({ model: ["--model"], store: [env.HOLDFAST_CONFIG], offlineDelayMs: ["default"] });
  });

  test("the store: ~/ is the home wherever it is written; the file names one place for all folders", () => {
    const store = (given: string) => loadConfig({}, around({ HOLDFAST_CONFIG: file({ store: given }) })).store;
    for (const [given, address] of [
      ["~/s", "/home/u/s"],
      ["~", "/home/u"],
      ["sqlite:~/s.db", "sqlite:/home/u/s.db"],
      ["/s", "/s"],
      ["sqlite:///s.db", "sqlite:///s.db"],
      ["postgres://h/d", "postgres://h/d"],
    ])
      expect(store(given!)).toBe(address);
    for (const given of ["s", "./s", "sqlite:s.db", "~other/s"])
      expect(() => store(given)).toThrow(/must be an absolute path/);
    const env = { HOLDFAST_CONFIG: "", HOLDFAST_STORE: "~/s" };
    expect(() => loadConfig({}, { ...around(env), home: () => "" })).toThrow(/no home/);
    expect(loadConfig({}, around(env)).store).toBe("/home/u/s");
    expect(loadConfig({ store: "s" }, around(env)).store).toBe("s");
    expect(namedStore("sqlite:~/s.db", around(env))).toBe("sqlite:/home/u/s.db");
  });

  test("rules of permission add up, and commas between brackets are theirs", () => {
    const env = {
      HOLDFAST_CONFIG: file({ allow: ["read(**)"], deny: ["shell(rm *)"] }),
      HOLDFAST_ALLOW: "list, shell(echo a,b) ,write(x)",
    };
    const config = loadConfig({ allow: ["edit"] }, around(env));
    expect(config.allow).toEqual(["read(**)", "list", "shell(echo a,b)", "write(x)", "edit"]);
    expect(config.deny).toEqual(["shell(rm *)"]);
  });

  test.each([
    ["not JSON", "{model", /is not valid JSON/],
    ["no object", "[]", /one JSON object/],
    ["a name that is none", { modle: "x" }, /unknown setting "modle"/],
    ["a secret switch", { debug: true }, /unknown setting "debug"/],
    ["a wrong type", { model: 7 }, /"model" must be a non-empty string.*not 7/],
    ["an address that is none", { baseUrl: "localhost:11434" }, /"baseUrl" must be a URL/],
    ["a number that is none", { windowTokens: -1 }, /"windowTokens" must be a whole number/],
    ["a window of nothing", { windowTokens: 0 }, /"windowTokens" must be a whole number of at least 1/],
    ["a list that is none", { allow: [1] }, /"allow" must be a list/],
  ])("%s in the file is said, with its path", (_name, content, words) => {
    const path = file(content);
    const load = () => loadConfig({}, around({ HOLDFAST_CONFIG: path }));
    expect(load).toThrow(words);
    expect(load).toThrow(path);
    expect(load).toThrow(expect.objectContaining({ code: "CONFIG_INVALID", exitCode: 2 }));
  });

  test("a wrong variable is named", () => {
    expect(() => loadConfig({}, around({ HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: "fast" }))).toThrow(
      /^HOLDFAST_OFFLINE_DELAY_MS must be a whole number/,
    );
  });

  test("a file that was named must be there; the usual one need not", () => {
    expect(() => loadConfig({}, around({ HOLDFAST_CONFIG: join(folder, "none.json") }))).toThrow(/could not be read/);
    expect(loadConfig({}, { ...around({}), home: () => folder }).model).toBe("offline");
  });

  test("the switch", () => {
    for (const [value, debug] of [
      ["1", true],
      ["true", true],
      ["0", false],
      ["false", false],
      ["", false],
    ] as const)
      expect(loadConfig({}, around({ HOLDFAST_CONFIG: "", HOLDFAST_DEBUG: value })).debug).toBe(debug);
  });

  test("where the file is", () => {
    expect(configPath(around({}))).toBe("/home/u/.config/holdfast/config.json");
    expect(configPath(around({ XDG_CONFIG_HOME: "/x" }))).toBe("/x/holdfast/config.json");
    expect(configPath(around({ XDG_CONFIG_HOME: "relative" }))).toBe("/home/u/.config/holdfast/config.json");
    expect(configPath({ env: { APPDATA: "C:\\a" }, platform: "win32", home: () => "C:\\u" })).toBe(
      "C:\\a\\holdfast\\config.json",
    );
    const homeless = () => {
      throw new Error("no home");
    };
    expect(configPath({ env: {}, platform: "linux", home: homeless })).toBeNull();
  });

  test("every setting has one variable, and no two share one, except programs, which only the file can name", () => {
    const variables = settings.flatMap(({ env }) => env ?? []);
    expect(new Set(variables).size).toBe(variables.length);
    expect(settings.filter(({ env }) => env === undefined).map(({ key }) => key)).toEqual(["stores", "mcpServers"]);
  });
});
