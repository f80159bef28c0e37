import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { rulesPath } from "../../../src/config.ts";
import { decide } from "../../../src/tools/permission/decide.ts";
import { ProjectRules, projectOf } from "../../../src/trust/project-rules.ts";

let place: string;
let file: string;
let project: string;
const rules = (): ProjectRules => new ProjectRules(file);
const NONE = { allow: [], ask: [], deny: [] };

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "holdfast-rules-"));
  file = join(place, "config", "holdfast", "rules.json");
  project = join(place, "project");
  mkdirSync(project);
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function put(text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
}

test("a rule is saved privately in the user's configuration, applies in this folder, and is gone when it is removed", () => {
  expect(rules().add(project, "allow", ["shell(npm test)", "shell(npm test)"])).toEqual(["shell(npm test)"]);
  expect(rules().add(project, "allow", ["shell(npm test)"])).toEqual([]);
  rules().add(project, "deny", ["shell(git push)"]);
  expect(rules().of(project)).toEqual({ allow: ["shell(npm test)"], ask: [], deny: ["shell(git push)"] });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(dirname(file))).toEqual(["rules.json"]);
  expect(readdirSync(project)).toEqual([]);
  expect(rules().remove(project, ["shell(npm test)", "shell(other)"])).toEqual(["shell(npm test)"]);
  rules().remove(project, ["shell(git push)"]);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ version: 1, projects: {} });
});

test("rules apply in exactly one folder, by its real path: not below it, not above it, not in one with a similar name", () => {
  rules().add(project, "allow", ["write"]);
  for (const other of [join(project, "below"), `${project}2`]) mkdirSync(other);
  symlinkSync(project, join(place, "link"));
  expect(rules().of(join(place, "link")).allow).toEqual(["write"]);
  for (const other of [join(project, "below"), `${project}2`, place, join(place, "missing")])
    expect(rules().of(other)).toEqual(NONE);
});

test("nothing in a project grants anything, whatever it is called", () => {
  const text = JSON.stringify({ version: 1, projects: { [project]: { allow: ["*"] } }, allow: ["*"] });
  for (const name of [
    "rules.json",
    "config.json",
    ".holdfast.json",
    "holdfast/rules.json",
    ".config/holdfast/rules.json",
  ]) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text, { mode: 0o600 });
  }
  expect(rules().of(project)).toEqual(NONE);
});

test("the file is beside the configuration; without a configuration there is none", () => {
  const around = { env: {}, platform: "linux", home: () => "/home/me" };
  expect(rulesPath(around)).toBe("/home/me/.config/holdfast/rules.json");
  expect(rulesPath({ ...around, env: { HOLDFAST_CONFIG: "/etc/mine/hf.json" } })).toBe("/etc/mine/rules.json");
  expect(rulesPath({ ...around, env: { HOLDFAST_CONFIG: "" } })).toBeNull();
  expect(new ProjectRules(null).of(project)).toEqual(NONE);
  expect(() => new ProjectRules(null).add(project, "allow", ["write"])).toThrow("no configuration folder");
});

test("a rule that is removed while an agent runs stops to apply at once; one that is added applies", () => {
  const running = rules();
  expect(running.of(project)).toEqual(NONE);
  rules().add(project, "allow", ["write"]);
  expect(running.of(project).allow).toEqual(["write"]);
  rules().remove(project, ["write"]);
  expect(running.of(project)).toEqual(NONE);
});

test("a file that breaks while an agent runs allows nothing more, and still denies", () => {
  const running = rules();
  running.add(project, "allow", ["shell"]);
  running.add(project, "deny", ["shell(git push)"]);
  put("{ broken");
  expect(running.of(project)).toEqual({ allow: [], ask: [], deny: ["shell(git push)"] });
});

test.each([
  ["no JSON", "{ broken", /not valid JSON/],
  ["another version", '{"version":2,"projects":{}}', /"version": 1/],
  ["a misspelt kind", '{"version":1,"projects":{"/x":{"denny":["write"]}}}', /unknown kind of rule "denny"/],
  ["no list", '{"version":1,"projects":{"/x":{"deny":"write"}}}', /"deny" must be a list/],
  ["a list of projects", '{"version":1,"projects":[]}', /must be an object of folders/],
])("%s: nothing starts, and the file is left as it is", (_, text, why) => {
  put(text);
  expect(() => rules().load()).toThrow(why);
  expect(() => rules().add(project, "allow", ["write"])).toThrow(why);
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("a file that others can write, or that is no file, is refused", () => {
  put('{"version":1,"projects":{}}');
  chmodSync(file, 0o666);
  expect(() => rules().load()).toThrow("is writable by other users");
  rmSync(file);
  mkdirSync(file);
  expect(() => rules().load()).toThrow("is not a plain file");
});

test("the file may be a link: people keep their configuration elsewhere; the link stays", () => {
  const real = join(place, "dotfiles.json");
  writeFileSync(real, '{"version":1,"projects":{}}', { mode: 0o600 });
  mkdirSync(dirname(file), { recursive: true });
  symlinkSync(real, file);
  rules().add(project, "allow", ["write"]);
  expect(readFileSync(real, "utf8")).toContain('"write"');
  expect(rules().of(project).allow).toEqual(["write"]);
});

test("a folder of another user has no rules: anyone can make one where this user once had one", ({ skip }) => {
  if (process.getuid?.() !== 0) skip("not run: needs root");
  rules().add(project, "allow", ["write"]);
  chownSync(project, 12_345, 12_345);
  expect(projectOf(project)).toEqual({ why: `${project} belongs to another user (12345)` });
  expect(rules().of(project)).toEqual(NONE);
});

test("many processes that add and remove rules at once: none is lost, and none comes back", async () => {
  const program = `
    import { ProjectRules } from ${JSON.stringify(join(import.meta.dirname, "../../../src/trust/project-rules.ts"))};
    const [file, project, name] = process.argv.slice(1);
    const rules = new ProjectRules(file);
    for (let i = 0; i < 10; i++) {
      rules.add(project, "allow", [\`kept-\${name}-\${i}\`, \`gone-\${name}-\${i}\`]);
      rules.remove(project, [\`gone-\${name}-\${i}\`]);
    }`;
  const children = ["a", "b", "c"].map((name) =>
    spawn(
      process.execPath,
      ["--conditions=holdfast-source", "--input-type=module", "-e", program, file, project, name],
      {
        stdio: ["ignore", "ignore", "inherit"],
      },
    ),
  );
  expect(await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]))).toEqual([0, 0, 0]);
  const { allow } = rules().of(project);
  expect(allow.filter((rule) => rule.startsWith("kept-"))).toHaveLength(30);
  expect(allow).toHaveLength(30);
  expect(existsSync(`${file}.lock`)).toBe(false);
});

test("the lock of a process that died does not block; that of a living one does not stay forever", () => {
  put('{"version":1,"projects":{}}');
  writeFileSync(`${file}.lock`, String(spawnSync("true").pid));
  expect(rules().add(project, "allow", ["write"])).toEqual(["write"]);
  writeFileSync(`${file}.lock`, "");
  utimesSync(`${file}.lock`, 0, 0);
  expect(rules().add(project, "allow", ["read"])).toEqual(["read"]);
  writeFileSync(`${file}.lock`, String(process.ppid));
  expect(() => new ProjectRules(file, 50).add(project, "allow", ["edit"])).toThrow(
    /holds .*rules\.json\.lock\. Nothing was changed/,
  );
  expect(rules().of(project).allow).toEqual(["write", "read"]);
});

test("the agent may not change the rules by a wildcard: only a rule that names the very file allows that", () => {
  const write = (allow: string[]): string => {
    const input = { path: file, content: "{}" };
    const policy = { allow, ask: [], deny: [] };
    return decide({ name: "write", input }, { cwd: place, policy, rules: file }).verdict;
  };
  mkdirSync(dirname(file), { recursive: true });
  for (const allow of ["*", "write", "write(**)", "write(config/holdfast/*)"]) expect(write([allow])).toBe("ask");
  expect(write(["write(config/holdfast/rules.json)"])).toBe("allow");
});
