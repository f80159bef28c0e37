import { linkSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import {
  allowFlag,
  checkRule,
  type Decision,
  decide,
  makeSearchFilter,
  type Policy,
  type PolicyContext,
  refusal,
} from "../../../../src/tools/permission/decide.ts";
import { simpleCommands } from "../../../../src/tools/permission/shell-words.ts";

const here = place();
const root = realpathSync(here.path);
const cwd = join(root, "work");
const home = join(root, "home");
for (const folder of ["work/src/deep", "work/.git", "other", "home/.ssh"])
  mkdirSync(join(root, folder), { recursive: true });
writeFileSync(join(cwd, ".env"), "KEY=1");
symlinkSync("../../other", join(cwd, "src/out"));
symlinkSync("../../other/new", join(cwd, "src/dangling"));
symlinkSync(".env", join(cwd, "harmless.txt"));
symlinkSync("loop", join(cwd, "loop"));
symlinkSync("work/state", join(root, "linked"));
afterAll(() => here[Symbol.dispose]());

const judge = (
  name: string,
  input: unknown,
  policy: Partial<Policy> = {},
  more: Partial<PolicyContext> = {},
): Decision => decide({ name, input }, { cwd, home, policy: { allow: [], ask: [], deny: [], ...policy }, ...more });
const verdict = (...of: Parameters<typeof judge>): string => judge(...of).verdict;
const shell = (command: string, policy: Partial<Policy>): string => verdict("shell", { command }, policy);

describe("white space that sh does not skip is part of a word", () => {
  test.each(["\u00a0./run", "./run\u00a0", "./run\u2028", "\ufeff./run", "./run\r", "\f./run", "./run\\ "])(
    "%j is not the allowed command",
    (command) => {
      expect(shell(command, { allow: ["shell(./run)"] })).toBe("ask");
      expect(shell(command, { allow: ["shell(=./run)"] })).toBe("ask");
      expect(shell(command, { allow: [judge("shell", { command }).suggestion] }), "but its own rule allows it").toBe(
        "allow",
      );
      expect(shell("./run", { allow: [judge("shell", { command }).suggestion] })).toBe("ask");
    },
  );

  test("blanks that it skips are not", () => {
    for (const command of [" ./run", "./run\n", "\t./run \n "])
      expect(shell(command, { allow: ["shell(=./run)"] })).toBe("allow");
  });
});

describe("what holdfast keeps is guarded however it is written", () => {
  const kept = { store: "/home/me/Store", config: "/home/me/cfg/config.json", state: "/home/me/.local/state/holdfast" };
  test.each([
    "/home/me/.LOCAL/state/holdfast/trust/x.json",
    "/home/me/.local/State/Holdfast",
    "/HOME/me/cfg/CONFIG.JSON",
    "/home/me/store/x",
    "/home/me/STORE-wal",
    "/home/me/.lo\u200bcal/state/holdfast/x",
  ])("%s", (path) => {
    expect(verdict("write", { path, content: "" }, { allow: ["*", "write(/**)"] }, kept)).toBe("ask");
    expect(verdict("read", { path }, { allow: ["*", "read(/**)"] }, kept)).toBe("ask");
  });

  test("what is beside it is not", () => {
    for (const path of ["/home/me/store-front/a", "/home/me/cfg/other.json", "/home/me/.local/state/other"])
      expect(verdict("write", { path, content: "" }, { allow: ["write(/**)"] }, kept), path).toBe("allow");
  });

  test("a search passes it over, also where its folder is a link", () => {
    mkdirSync(join(cwd, "state2/holdfast"), { recursive: true });
    symlinkSync("work/state2", join(root, "linked2"));
    const skips = makeSearchFilter({
      cwd,
      home,
      policy: { allow: [], ask: [], deny: [] },
      state: join(root, "linked2/holdfast"),
    });
    expect(skips(join(cwd, "state2/holdfast/trust"))).toBe(true);
    expect(skips(join(cwd, "state2/other"))).toBe(false);
  });
});

test("a second name of another file is none of the agent's outputs", () => {
  const outputs = join(root, "out/s1");
  mkdirSync(outputs, { recursive: true });
  writeFileSync(join(root, "private.txt"), "mine");
  linkSync(join(root, "private.txt"), join(outputs, "c.1.log"));
  writeFileSync(join(outputs, "c.2.log"), "printed");
  const places = { outputs, allOutputs: join(root, "out") };
  expect(verdict("read", { path: join(outputs, "c.2.log") }, {}, places)).toBe("allow");
  expect(verdict("read", { path: join(outputs, "c.1.log") }, { allow: ["*"] }, places)).toBe("ask");
  const skips = makeSearchFilter({ cwd, home, policy: { allow: [], ask: [], deny: [] }, ...places });
  expect([skips(join(outputs, "c.1.log")), skips(join(outputs, "c.2.log"))]).toEqual([true, false]);
});

describe("by default", () => {
  test.each([
    ["read", { path: "src/a.ts" }, "allow"],
    ["read", { path: "none/at/all" }, "allow"],
    ["list", {}, "allow"],
    ["list", undefined, "allow"],
    ["search", { pattern: "x" }, "allow"],
    ["search", { pattern: "x", path: "src" }, "allow"],
    ["read", { path: cwd }, "allow"],
    ["read", { path: "src/../src/a.ts" }, "allow"],
    ["write", { path: "src/a.ts", content: "" }, "ask"],
    ["edit", { path: "src/a.ts", old: "a", new: "b" }, "ask"],
    ["shell", { command: "true" }, "ask"],
    ["delegate", { task: "x" }, "ask"],
    ["read", { path: "../other/a" }, "ask"],
    ["read", { path: "/etc/passwd" }, "ask"],
    ["read", { path: "src/out/a" }, "ask"],
    ["read", { path: "src/out/../a" }, "ask"],
    ["read", { path: "src/dangling" }, "ask"],
    ["list", { path: ".." }, "ask"],
    ["search", { pattern: "x", path: "/" }, "ask"],
    ["read", { path: ".env" }, "ask"],
    ["read", { path: "src/.ENV.local" }, "ask"],
    ["read", { path: "harmless.txt" }, "ask"],
    ["read", { path: "keys/server.pem" }, "ask"],
    ["read", { path: ".envrc" }, "ask"],
    ["read", { path: "a/.bash_history" }, "ask"],
    ["read", { path: "credentials.toml" }, "ask"],
    ["read", { path: "config/secrets.yml" }, "ask"],
    ["read", { path: "main.tfstate" }, "ask"],
    ["read", { path: ".aws/credentials" }, "ask"],
    ["read", { path: "credentials" }, "ask"],
    ["read", { path: "src/secrets.ts" }, "allow"],
    ["read", { path: "src/credentials.test.ts" }, "allow"],
    ["list", { path: "secrets" }, "allow"],
    ["read", { path: ".env.example" }, "allow"],
    ["read", { path: "environment.ts" }, "allow"],
    ["read", { path: "loop" }, "ask"],
    ["read", { path: "a\0b" }, "ask"],
    ["read", {}, "ask"],
    ["read", { path: 5 }, "ask"],
    ["read", null, "ask"],
    ["shell", {}, "ask"],
  ])("%s %j: %s", (name, input, wanted) => {
    expect(verdict(name, input)).toBe(wanted);
  });

  test("what processes show of themselves is asked for, wherever the agent works", () => {
    expect(verdict("read", { path: "/proc/self/environ" }, { allow: ["read"] }, { cwd: "/" })).toBe("ask");
    expect(verdict("read", { path: "/process" }, {}, { cwd: "/" })).toBe("allow");
  });

  test("the agent may not give itself more by a rule that lets it write", () => {
    const path = ".config/holdfast/config.json";
    const rules = { allow: ["write(**)", "write"] };
    expect(verdict("write", { path, content: '{"allow":["*"]}' }, rules)).toBe("ask");
    const config = join(cwd, "rules.json");
    expect(verdict("write", { path: "rules.json", content: "" }, rules, { config })).toBe("ask");
    expect(verdict("write", { path: "rules.js", content: "" }, rules, { config })).toBe("allow");
  });

  test("the store itself is asked for, by whatever address it is known", () => {
    for (const folder of ["state", "Application Support", "größe"]) {
      const path = join(cwd, folder);
      for (const store of [path, pathToFileURL(path).href]) {
        expect(verdict("read", { path: `${folder}/sessions/1` }, {}, { store }), store).toBe("ask");
        expect(verdict("read", { path: `${folder}less.ts` }, {}, { store })).toBe("allow");
      }
    }
    const store = `sqlite:${join(cwd, "s.db")}`;
    for (const path of ["s.db", "s.db-wal"])
      expect(verdict("read", { path }, { allow: ["read"] }, { store })).toBe("ask");
  });

  test("the store is asked for, also if its address is a link into the folder; a search passes over it", () => {
    for (const store of [join(root, "linked"), `sqlite:${join(root, "linked/s.db")}`]) {
      expect(verdict("write", { path: "state/s.db", content: "" }, { allow: ["write(**)"] }, { store })).toBe("ask");
      expect(verdict("write", { path: "stateless", content: "" }, { allow: ["write(**)"] }, { store })).toBe("allow");
      const skips = makeSearchFilter({ cwd, home, store, policy: { allow: [], ask: [], deny: [] } });
      expect(skips(join(cwd, "state/s.db"))).toBe(true);
      expect(skips(join(cwd, "stateless"))).toBe(false);
    }
    const config = join(root, "linked/config.json");
    const skips = makeSearchFilter({ cwd, home, config, policy: { allow: [], ask: [], deny: [] } });
    expect(skips(join(cwd, "state/config.json")), "nor is the configuration searched").toBe(true);
  });
});

test("what the agent's own commands have printed may be read, though it is kept beside the journal", () => {
  const store = join(root, "state");
  const outputs = join(root, "state/outputs/s1");
  const judged = (name: string, path: string, policy: Partial<Policy> = {}): string =>
    verdict(name, { path, pattern: "x", content: "" }, policy, { store, outputs });
  expect(judged("read", join(outputs, "c.1.log"))).toBe("allow");
  expect(judged("search", join(outputs, "c.1.log"))).toBe("allow");
  for (const path of [join(outputs, "../s2/c.1.log"), store]) expect(judged("read", path)).toBe("ask");
  expect(judged("write", join(outputs, "c.1.log"), { allow: ["write(/**)"] })).toBe("ask");
  expect(judged("read", join(outputs, "c.1.log"), { deny: ["read"] })).toBe("deny");
});

test("what the commands of other sessions have printed is asked for, also where it is kept beside a database", () => {
  const places = {
    store: `sqlite:${join(cwd, "s.db")}`,
    outputs: join(cwd, "s.db.outputs/s1"),
    allOutputs: join(cwd, "s.db.outputs"),
  };
  expect(verdict("read", { path: "s.db.outputs/s1/c.1.log" }, {}, places)).toBe("allow");
  expect(verdict("read", { path: "s.db.outputs/s2/c.1.log" }, { allow: ["read"] }, places)).toBe("ask");
  const skips = makeSearchFilter({ cwd, home, ...places, policy: { allow: [], ask: [], deny: [] } });
  expect(skips(join(cwd, "s.db.outputs/s2/c.1.log"))).toBe(true);
  expect(skips(join(cwd, "s.db.md"))).toBe(false);
});

describe("rules for paths", () => {
  test.each([
    ["write", "src/a.ts", "write", "allow"],
    ["write", "src/a.ts", "write(src/**)", "allow"],
    ["write", "src/deep/a.ts", "write(src/**)", "allow"],
    ["write", "src/deep/a.ts", "write(src/*)", "ask"],
    ["write", "src/a.ts", "write(src/*.ts)", "allow"],
    ["write", "src/a.js", "write(src/*.ts)", "ask"],
    ["write", "src/deep/a.test.ts", "write(**/*.test.ts)", "allow"],
    ["write", "srcx/a.ts", "write(src/**)", "ask"],
    ["write", "src/../package.json", "write(src/**)", "ask"],
    ["write", "src/out/a", "write(src/**)", "ask"],
    ["write", "src/dangling", "write(src/**)", "ask"],
    ["write", "../other/a", "write", "ask"],
    ["write", "../other/a", "write(../other/**)", "allow"],
    ["write", "src/out/a", "write(../other/*)", "allow"],
    ["write", "src/a.ts", "edit(src/**)", "ask"],
    ["write", ".git/hooks/pre-commit", "write", "ask"],
    ["write", ".git/config", "write(**)", "ask"],
    ["write", ".git/config", "write(.git/config)", "allow"],
    ["read", ".git/config", "read(src/**)", "ask"],
    ["read", ".git/config", "read(.git/config)", "allow"],
    ["read", ".git/HEAD", "read(src/**)", "allow"],
    ["read", ".env", "read", "ask"],
    ["read", ".env", "read(**)", "ask"],
    ["read", ".env", "read(.env)", "allow"],
    ["read", ".env", "*", "ask"],
    ["read", "src/a.ts", "*", "allow"],
    ["read", "harmless.txt", "read(harmless.txt)", "ask"],
    ["read", "/etc/passwd", "read", "ask"],
    ["read", "/etc/passwd", "read(/etc/*)", "allow"],
    ["read", "/etc/passwd", "*", "allow"],
    ["list", "/etc", "list(/etc)", "allow"],
    ["list", "/etc", "list(/*)", "ask"],
    ["list", "/etc", "list(/etc/**)", "allow"],
    ["search", "/etc/ssl", "search(/etc/**)", "allow"],
    ["write", "a*b", "write(=a*b)", "allow"],
    ["write", "axb", "write(=a*b)", "ask"],
    ["write", "src/a.ts", "write(src/**", "ask"],
    ["write", "src/a.ts", "write()", "ask"],
    ["write", "src/a.ts", "write(src/**/../x)", "ask"],
  ])("%s %s with --allow %s: %s", (name, path, rule, wanted) => {
    expect(verdict(name, { path, pattern: "x", content: "" }, { allow: [rule] })).toBe(wanted);
  });

  test("a rule for the home folder, and a file below it", () => {
    const notes = { allow: ["read(~/notes/**)"] };
    expect(verdict("read", { path: join(home, "notes/a") }, notes)).toBe("allow");
    expect(verdict("read", { path: "~/notes/a" }, notes), "the tools know no ~: this is a folder of that name").toBe(
      "allow",
    );
    expect(verdict("read", { path: join(home, ".ssh/id_ed25519") }, { allow: ["read(~/**)"] })).toBe("ask");
  });

  test("deny is stronger than ask, ask than allow; and both see through links, case and the name that was used", () => {
    const all = { allow: ["*"], ask: ["read(src/**)"], deny: ["read(src/deep/**)", "read(../other/**)"] };
    expect(judge("read", { path: "src/deep/a" }, all)).toMatchObject({ verdict: "deny", rule: "read(src/deep/**)" });
    expect(judge("read", { path: "src/a" }, all)).toMatchObject({ verdict: "ask", rule: "read(src/**)" });
    expect(judge("read", { path: "b" }, all)).toMatchObject({ verdict: "allow", rule: "*" });
    expect(verdict("read", { path: "src/out/a" }, all), "where it leads").toBe("deny");
    expect(verdict("read", { path: "SRC/Deep/A" }, all)).toBe("deny");
    expect(verdict("read", { path: "src/out/a" }, { allow: ["*"], deny: ["read(src/out/*)"] }), "its name").toBe(
      "deny",
    );
    for (const deny of [["*"], ["read"], ["read("], ["??"]])
      expect(verdict("read", { path: "b" }, { deny })).toBe("deny");
    expect(verdict("list", {}, { deny: ["read"] })).toBe("allow");
  });
});

describe("rules for the shell", () => {
  test.each([
    ["git status", "shell(git status)", "allow"],
    ["  git   status ", "shell(git status)", "allow"],
    ["'git' \"status\"", "shell(git status)", "allow"],
    ["git status 2>&1", "shell(git status)", "allow"],
    ["git status 2>/dev/null", "shell(git status)", "allow"],
    ["git status -s", "shell(git status)", "ask"],
    ["git status -s", "shell(git status *)", "ask"],
    ["git status -s", "shell(git status **)", "allow"],
    ["git status src", "shell(git status *)", "allow"],
    ["git stash", "shell(git status *)", "ask"],
    ["npm test", "shell(npm *)", "allow"],
    ["npm", "shell(npm *)", "allow"],
    ["npmx test", "shell(npm *)", "ask"],
    ["npm run test:unit", "shell(npm run test:*)", "allow"],
    ["npm run build", "shell(npm run test:*)", "ask"],
    ["rm build/a", "shell(rm build/*)", "allow"],
    ["rm build/*", "shell(rm build/*)", "allow"],
    ["rm build/../src", "shell(rm build/*)", "ask"],
    ["rm build/..", "shell(rm build/*)", "ask"],
    ["chmod 0 build/.?", "shell(chmod 0 build/*)", "ask"],
    ["chmod 0 build/.*", "shell(chmod 0 build/*)", "ask"],
    ["chmod 0 build/.a", "shell(chmod 0 build/*)", "allow"],
    ["rm build/a/b", "shell(rm build/*)", "ask"],
    ["rm build/~", "shell(rm *)", "allow"],
    ["rm build/a /etc/b", "shell(rm build/*)", "ask"],
    ["anything at all", "shell(*)", "allow"],
    ["a && b", "shell(*)", "allow"],
    ["a $(b)", "shell(*)", "ask"],
    ["a $(b)", "shell", "allow"],
    ["a $(b)", "*", "allow"],
    ["a $(b)", "shell(=a $(b))", "allow"],
    ["a $(b)", "shell(a $(b))", "allow"],
    ["a && b", "shell(a && b)", "allow"],
    ["a && b", "shell(a && *)", "ask"],
    ["rm *", "shell(=rm *)", "allow"],
    ["rm x", "shell(=rm *)", "ask"],
    ["grep '*' x", "shell(=grep * x)", "ask"],
  ])("%s with --allow %s: %s", (command, rule, wanted) => {
    expect(shell(command, { allow: [rule] })).toBe(wanted);
  });

  test.each([
    "npm test; rm -rf /",
    "npm test && rm -rf /",
    "npm test || rm -rf /",
    "npm test | sh",
    "npm test |& sh",
    "npm test & rm -rf /",
    "npm test\nrm -rf /",
    "npm test $(rm -rf /)",
    "npm test `rm -rf /`",
    'npm test "$(rm -rf /)"',
    'npm test "`rm -rf /`"',
    "npm test > /etc/passwd",
    "npm test >/dev/null>x",
    "npm test >/dev/nullx",
    "npm test 2> x",
    "npm test < /etc/shadow",
    "npm test <<EOF\nEOF",
    "npm test <(rm x)",
    "npm $X",
    `npm ${"$"}{X}`,
    "(npm test)",
    "{ npm test; }",
    "! npm test",
    "if npm test; then rm x; fi",
    "X=1 npm test",
    "PATH=/tmp npm test",
    "npm test # comment",
    "npm 'test",
    'npm "test',
    "npm test \\",
    "npm {a,b}",
    "n*m test",
    "~/npm test",
    "./npm test",
    "/tmp/npm test",
    "\u00a0npm test",
    "npm\0 test",
    "",
    "   ",
  ])("%j is not what shell(npm *) allows", (command) => {
    expect(shell(command, { allow: ["shell(npm *)"] })).toBe("ask");
  });

  test("each command of a line may be allowed by another rule", () => {
    const allow = ["shell(npm *)", "shell(git status)", "shell(wc -*)"];
    expect(judge("shell", { command: "npm ci && git status | wc -l" }, { allow })).toMatchObject({
      verdict: "allow",
      rule: "shell(npm *), shell(git status), shell(wc -*)",
    });
    expect(shell("npm ci && git push", { allow })).toBe("ask");
  });

  test("a rule that forbids sees every command of a line; what cannot be taken apart is not allowed beside it", () => {
    const policy = { allow: ["shell"], deny: ["shell(git push *)"] };
    for (const command of [
      "git push",
      "git push --force",
      "true; git push",
      "ls | git push",
      "/usr/bin/git push",
      "git 'push' x",
    ])
      expect(shell(command, policy), command).toBe("deny");
    expect(shell("git status && ls -l", policy)).toBe("allow");
    expect(shell("git pull && npm test", policy), "those run hooks and scripts").toBe("ask");
    for (const command of ["echo $(git push)", "if true; then git push; fi", "X=1 git push", "git push > log"])
      expect(shell(command, policy), command).toBe("ask");
    expect(shell("echo $(git push)", { ...policy, allow: ["*"] })).toBe("ask");
    expect(shell("echo $(git push)", { allow: ["shell"], ask: ["shell(git push)"] })).toBe("ask");
    expect(shell("echo $(date)", { ...policy, allow: ["shell(=echo $(date))"] }), "somebody has read it").toBe("allow");
  });

  test("a rule that forbids is not got around by a command that runs another, nor by options before the word that it names", () => {
    const policy = { deny: ["shell(git push *)"], ask: ["shell(rm *)"] };
    for (const allow of [["shell"], ["*"], ["shell(*)"]]) {
      for (const command of ["env git push", "sh -c 'git push'", "command git push", "git -C . push"])
        expect(shell(command, { ...policy, allow }), `${allow} ${command}`).toBe("deny");
      for (const command of [
        "ls | xargs rm",
        "/usr/bin/env rm x",
        "find . -exec rm {} +".replace("{}", "'{}'"),
        "git -c alias.p=push p",
        "true; timeout 5 rm x",
        "git commit -m push",
      ])
        expect(shell(command, { ...policy, allow }), `${allow} ${command}`).toBe("ask");
      for (const command of ["git status", "find . -name x", "ls -l", "git log push"])
        expect(shell(command, { ...policy, allow }), `${allow} ${command}`).toBe("allow");
    }
    expect(shell("env rm x", { ...policy, allow: ["shell(env rm *)"] }), "a rule that asks is stronger").toBe("ask");
    expect(shell("env ls", { allow: ["shell"] }), "nothing is forbidden").toBe("allow");
    for (const command of ["git -C . push", "ls; git --no-pager push"])
      expect(shell(command, { ...policy, allow: ["shell(git **)", "shell(ls)"] }), command).toBe("deny");
    for (const command of ["git -c alias.p=push p", "git -C . status"])
      expect(shell(command, { ...policy, allow: ["shell(git **)"] }), command).toBe("ask");
    for (const command of ["git status", "git -C . status", "ls; npm -s test"])
      expect(
        shell(command, { ...policy, allow: ["shell(git *)", "shell(git -C . status)", "shell(ls)", "shell(npm **)"] }),
        command,
      ).toBe("allow");
  });

  test("a rule that forbids names longer commands too, unless it is marked as exact", () => {
    expect(shell("git push --force", { allow: ["shell"], deny: ["shell(git push)"] })).toBe("deny");
    expect(shell("git push --force", { allow: ["shell"], ask: ["shell(git push)"] })).toBe("ask");
    expect(shell("make deployed", { allow: ["shell(make *)"], deny: ["shell(make deploy)"] })).toBe("allow");
    expect(shell("git pushed", { allow: ["shell(git *)"], deny: ["shell(git push)"] }), "an alias?").toBe("ask");
    expect(shell("git push --force", { allow: ["shell(git push **)"], deny: ["shell(=git push)"] })).toBe("allow");
    expect(shell("git push --force", { allow: ["shell(git push)"] }), "one that allows does not").toBe("ask");
  });

  test("a line is taken apart as the shell does it", () => {
    expect(simpleCommands('a \'b c\' "d \\" e" f\\ g; h\\\ni|j\n\nk && l || m;')).toEqual([
      ["a", "b c", 'd " e', "f g"],
      ["hi"],
      ["j"],
      ["k"],
      ["l"],
      ["m"],
    ]);
    expect(simpleCommands("a '' x#y 3>&1 2>>/dev/null </dev/null b")).toEqual([["a", "", "x#y", "b"]]);
    expect(simpleCommands("a *.ts '*.ts'")).toEqual([["a", "\0*.ts", "*.ts"]]);
  });
});

describe("words", () => {
  test("a summary on one line, whatever the input", () => {
    expect(judge("shell", { command: "npm test" }).summary).toBe("run npm test");
    expect(judge("write", { path: "src/a.ts", content: "12345" }).summary).toBe("write src/a.ts (5 characters)");
    expect(judge("search", { pattern: "x+", path: "src" }).summary).toBe("search src for x+");
    expect(judge("read", { path: "src/out/a" }).summary, "where it leads").toBe(`read ${join(root, "other/a")}`);
    expect(judge("delegate", { task: "x" }).summary).toBe('delegate {"task":"x"}');
    const hostile = judge("shell", { command: `\u001b[2J\r\n\u202e${"x".repeat(1000)}` }).summary;
    expect(hostile).toMatch(/^run \[2J x+…$/u);
    expect(hostile.length).toBeLessThanOrEqual(200);
    const round: { self?: unknown } = {};
    round.self = round;
    expect(judge("other", round).verdict).toBe("ask");
  });

  test("what is not allowed says which flag would allow it, and that flag does", () => {
    const { denial, suggestion } = judge("shell", { command: "git commit -m 'x'" });
    expect(suggestion).toBe("shell(git commit -m 'x')");
    expect(denial).toContain(`--allow 'shell(git commit -m '\\''x'\\'')'`);
    expect(allowFlag("read(a)")).toBe("--allow 'read(a)'");
    expect(judge("shell", { command: "x" }, { deny: ["shell"] }).denial).toContain("the user's rules deny it (shell)");
  });

  test.each([
    ["shell", { command: " \n" }, { command: "rm -rf ." }],
    ["write", { path: "a\0", content: "" }, { path: "b", content: "" }],
    ["write", { path: "loop", content: "" }, { path: "b", content: "" }],
    ["search", { path: "loop/x", pattern: "x" }, { path: "/", pattern: "x" }],
  ])("always, for a call of %s that names nothing, allows no other: %j", (name, input, other) => {
    const { verdict: first, suggestion } = judge(name, input);
    expect(first).toBe("ask");
    expect(checkRule(suggestion, "allow", "linux")).toBeNull();
    expect(verdict(name, other, { allow: [suggestion] })).toBe("ask");
  });

  test("a person's no", () => {
    expect(refusal()).toContain("it did not run. Do not try");
    expect(refusal("use git mv")).toContain("it did not run: use git mv. Do not try");
  });

  test("rules that are none are said to be", () => {
    for (const rule of ["*", "read", "write(src/**)", "shell(npm *)", "shell(a && b)", "task", "shell(=a; *)"])
      expect(checkRule(rule, "allow", "linux"), rule).toBeNull();
    for (const rule of ["", "read(", "read()", "*(x)", "shell(a && *)", "shell($X *)", "read(**/..)", "1x"])
      expect(checkRule(rule, "allow", "linux"), rule).toContain("is not a valid permission rule");
    for (const rule of ["wirte(.env)", "Shell(rm *)", "bash"])
      expect(checkRule(rule, "allow", "linux"), rule).toContain("names an unknown tool. The tools are read, write, ");
  });
});

test("a search passes over what would need a word to be read", () => {
  const skips = (path: string, policy: Partial<Policy> = {}): boolean =>
    makeSearchFilter({ cwd, home, policy: { allow: [], ask: [], deny: [], ...policy } })(path);
  expect(skips(join(cwd, "src/a.ts"))).toBe(false);
  expect(skips("/etc/passwd"), "somebody has allowed a search there").toBe(false);
  expect(skips(join(cwd, ".env"))).toBe(true);
  expect(skips(join(cwd, "src/deep/x"), { deny: ["read(src/deep/**)"] })).toBe(true);
  expect(skips(join(cwd, "src/deep/x"), { ask: ["search(src/deep/**)"] })).toBe(true);
  expect(skips(join(cwd, "src/deep/x"), { deny: ["write(src/deep/**)"] })).toBe(false);
});
