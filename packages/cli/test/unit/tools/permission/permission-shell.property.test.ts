import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import { decide, type Policy } from "../../../../src/tools/permission/decide.ts";

const seed = seedOf(import.meta.url, "unit");
const here = place();
const root = realpathSync(here.path);
afterAll(() => here[Symbol.dispose]());

const cwd = join(root, "work");
const bin = join(root, "bin");
const mark = join(root, "ran");
for (const folder of [cwd, bin]) mkdirSync(folder);
writeFileSync(join(bin, "evil"), `#!/bin/sh\n: > '${mark}'\n`);
chmodSync(join(bin, "evil"), 0o755);

const verdict = (command: string, policy: Partial<Policy>): string =>
  decide(
    { name: "shell", input: { command } },
    { cwd, home: "/home/me", platform: "linux", policy: { allow: [], ask: [], deny: [], ...policy } },
  ).verdict;

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;
const plain = fc.constantFrom("a", "b", "push", "run", "x/y", "build/a", "a.js", "main", "a b", "");
const option = fc.constantFrom("-s", "--quiet", "--x=y", "-C", "--", "-rf", "+x");
const word = fc.oneof(plain, plain, option);

/** What a rule allows, by a reading of its own: one regular expression over the words. */
function allowed(pattern: string, words: readonly string[]): boolean {
  const parts = pattern.split(" ");
  const last = parts.at(-1)!;
  const isOpen = last === "*" || last === "**";
  const fixed = (isOpen ? parts.slice(0, -1) : parts).map((part) =>
    part === "*"
      ? "(?![-+])[^\\0]*"
      : part.replaceAll(".", "\\.").replace(/^\*/u, "(?![-+])*").replaceAll("*", "[^/\\0]*"),
  );
  const rest = last === "*" ? "(?:\\0(?![-+])[^\\0]*)*" : last === "**" ? "(?:\\0[^\\0]*)*" : "";
  return new RegExp(`^${fixed.join("\\0")}${rest}$`, "u").test(words.join("\0"));
}

test("a rule with wildcards allows what a regular expression for it fits, and nothing else", () => {
  const pattern = fc
    .array(fc.constantFrom("a", "push", "*", "*.js", "build/*", "-s", "--x=*", "-*"), { maxLength: 3 })
    .chain((middle) => fc.constantFrom("", " *", " **").map((end) => ["ok", ...middle].join(" ") + end));
  let count = 0;
  holds(
    fc.property(pattern, fc.array(word, { maxLength: 4 }), (pattern, args) => {
      const isExact = !pattern.includes("*");
      const wanted = isExact
        ? pattern === ["ok", ...args].join(" ") && !args.includes("")
        : allowed(pattern, ["ok", ...args]);
      const command = ["ok", ...args.map(quoted)].join(" ");
      const found = verdict(command, { allow: [`shell(${pattern})`] }) === "allow";
      if (isExact && args.some((arg) => arg.includes(" "))) return;
      expect(found, `${pattern} on ${command}`).toBe(wanted);
      if (found) count += 1;
    }),
    seed,
    3000,
  );
  expect(count, "some were allowed").toBeGreaterThan(100);
});

test("a rule that denies is not got around: more words, options between them, case, paths, quotes, other commands", () => {
  const named = fc.array(fc.constantFrom("run", "push", "x/*", "a*", "--now", "-f"), { maxLength: 3 });
  const value = fc.constantFrom("q", "q/r", "7");
  const between = fc.array(
    fc.oneof(
      fc.constantFrom("-s", "--quiet", "-C"),
      fc.tuple(fc.constantFrom("-C", "--prefix"), value).map((both) => both.join(" ")),
    ),
    { maxLength: 2 },
  );
  const disguise = fc.record({
    program: fc.constantFrom("tool", "/usr/bin/tool", "./tool", "TOOL", "'tool'", "to\\ol", '"to"ol'),
    gaps: fc.array(between, { minLength: 4, maxLength: 4 }),
    fill: value,
    more: fc.array(fc.oneof(value, fc.constant("-v")), { maxLength: 2 }),
    before: fc.constantFrom("", "true; ", "ls | ", "cd /tmp && ", "env ", "sudo -n ", "timeout 5 ", "nohup nice "),
    after: fc.constantFrom("", " | cat", " 2>&1", "; ls", " > log", " &"),
    quote: fc.boolean(),
    shell: fc.constantFrom("", "sh -c ", "bash -lc "),
  });
  const allow = fc.constantFrom(
    ["*"],
    ["shell"],
    ["shell(*)"],
    ["shell(tool **)", "shell(ls)", "shell(true)", "shell(cd *)"],
  );
  holds(
    fc.property(named, disguise, allow, fc.constantFrom("deny", "ask"), (words, how, allow, kind) => {
      const parts = words.flatMap((one, at) => [...how.gaps[at]!, one.replace("*", how.fill)]);
      const args = [...parts, ...how.more].map((one) => (how.quote && !one.includes(" ") ? quoted(one) : one));
      const line = `${how.before}${[how.program, ...args].join(" ")}${how.after}`;
      const command = how.shell === "" ? line : how.shell + quoted(line);
      const rule = `shell(${["tool", ...words].join(" ")})`;
      expect(verdict(command, { allow, [kind]: [rule] }), `${rule} on ${command}`).not.toBe("allow");
    }),
    seed,
    4000,
  );
});

test("adding a rule that denies or asks never allows more", () => {
  const rule = fc.constantFrom("shell(ls)", "shell(git push*)", "shell(rm -rf)", "shell", "*", "shell(=ls)", "read(x)");
  const allow = fc.array(fc.constantFrom("*", "shell", "shell(ls **)", "shell(git *)", "shell(=ls -l)", "shell(*)"), {
    maxLength: 3,
  });
  const line = fc
    .array(
      fc.constantFrom("ls", "git", "push", "rm", "-rf", "-l", ";", "&&", "|", "env", "cd", "*", "$X", "sh", "-c", "x"),
      {
        maxLength: 8,
      },
    )
    .map((words) => words.join(" "));
  holds(
    fc.property(line, allow, fc.array(rule, { maxLength: 2 }), rule, (line, allow, deny, one) => {
      if (verdict(line, { allow, deny }) === "allow") return;
      expect(verdict(line, { allow, deny: [...deny, one] })).not.toBe("allow");
      expect(verdict(line, { allow, deny, ask: [one] })).not.toBe("allow");
    }),
    seed,
    2000,
  );
});

test("what * allows beside a rule that denies is carried out: no line runs a program that its words only name", () => {
  // A repository may hold files that are called like options.
  for (const name of ["--pre=evil", "-exec", "evil", "--compress-program=evil", "a.txt"])
    writeFileSync(join(cwd, name), "evil\n");
  const name = fc.constantFrom(
    ..."ls cat head wc sort uniq rg grep diff find sed git test printf echo tr cut tree base64 stat date jq command expr".split(
      " ",
    ),
    ..."awk env xargs tar split sh nice timeout".split(" "),
  );
  const arg = fc.constantFrom(
    ...[
      "evil",
      "-e",
      "--exec=evil",
      "-exec",
      "-O",
      "-Oevil",
      "--compress-program=evil",
      "--comp",
      "--pre",
      "--pre=evil",
    ],
    ...[
      "-z",
      "-o",
      "a.txt",
      "-n",
      "1p",
      "1e evil",
      "p",
      "log",
      "status",
      "grep",
      "diff",
      "--ext-diff",
      "*",
      "-*",
      "?e*",
    ],
    ...[";", "';'", "+", ".", "-name", "-ok", "-c", "-v", "'a[$(evil)]'", "-S", "1", "alias.x=!evil", "--filter=evil"],
  );
  const line = fc.tuple(name, fc.array(arg, { maxLength: 4 })).map(([first, args]) => [first, ...args].join(" "));
  let carriedOut = 0;
  holds(
    fc.property(line, (command) => {
      if (verdict(command, { allow: ["*"], deny: ["shell(evil)"] }) !== "allow") return;
      carriedOut += 1;
      const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: root, GIT_CEILING_DIRECTORIES: root };
      for (const [shell, ...given] of [["/bin/sh"], ["/bin/bash", "--posix"]]) {
        if (!existsSync(shell!)) continue;
        spawnSync(shell!, [...given, "-c", command], { cwd, env, stdio: "ignore", timeout: 10_000 });
        expect(existsSync(mark), `${shell}: ${command}`).toBe(false);
      }
    }),
    seed,
    250,
  );
  expect(carriedOut, "some were allowed").toBeGreaterThan(20);
}, 120_000);

test("what is allowed in front of ls is carried out: no line makes ls another program", () => {
  // Where a changed folder or PATH would find it.
  for (const folder of ["tools", "0", "1", "2", "3"]) {
    mkdirSync(join(cwd, folder));
    writeFileSync(join(cwd, folder, "ls"), `#!/bin/sh\n: > '${mark}'\n`);
    chmodSync(join(cwd, folder, "ls"), 0o755);
  }
  const names =
    "printf echo test cd command builtin read let mapfile wait export declare unset hash true type getopts set alias".split(
      " ",
    );
  const arg = fc.constantFrom(
    ...["-v", "-vPATH", "PATH", "%s", "tools", "'xx%n'", "'%5n'", "-p", "--", "cd", "printf", "1", "PATH=tools"],
    ...["PATH=1", "ls=evil", "-x", "-n", ".", "ls", "*", "a"],
  );
  const assignment = fc.constantFrom(
    ...["printf -v PATH %s tools", "printf 'xx%n' PATH", "command printf -vPATH tools", "let PATH=1", "wait -p PATH"],
    ...["builtin -- export PATH=tools", "hash -p tools/ls ls", "declare PATH=tools", "printf '%%%n' PATH"],
  );
  const random = fc
    .tuple(fc.constantFrom(...names), fc.array(arg, { maxLength: 4 }))
    .map(([name, args]) => [name, ...args].join(" "));
  const line = fc
    .tuple(fc.oneof(random, random, assignment), fc.constantFrom("; ls", " && ls", " || ls"))
    .map((both) => both.join(""));
  const allow = ["*", "shell(ls)", ...names.map((name) => `shell(${name} **)`)];
  let carriedOut = 0;
  holds(
    fc.property(line, (command) => {
      if (verdict(command, { allow, deny: ["shell(evil)"] }) !== "allow") return;
      carriedOut += 1;
      const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: root };
      for (const [shell, ...given] of [["/bin/sh"], ["/bin/bash"], ["/bin/bash", "--posix"]]) {
        if (!existsSync(shell!)) continue;
        rmSync(mark, { force: true });
        spawnSync(shell!, [...given, "-c", command], { cwd, env, stdio: "ignore", timeout: 10_000 });
        expect(existsSync(mark), `${shell}: ${command}`).toBe(false);
      }
    }),
    seed,
    300,
  );
  expect(carriedOut, "some were allowed").toBeGreaterThan(20);
}, 120_000);

test("long lines are judged in steps that grow with their length", () => {
  // Squared, each of these would take hours: it would not come to its end.
  const many = 100_000;
  const policy = {
    allow: ["shell(env **)", "*"],
    deny: ["shell(git push*)", "shell(rm -rf * x)", "shell(*a*a*a*b c)"],
  };
  for (const line of [
    `env ${"git -a ".repeat(many)}`,
    `env ${"git ; ".repeat(many)}`,
    `rm ${"-a * ".repeat(many)}`,
    `git ${"*a".repeat(many)}`,
    `git ${"-".repeat(many)} push`,
    `sh -c '${"git ".repeat(many)}'`,
    `${"cd a; ".repeat(many)}`,
    `env '${"; ".repeat(many)}'`,
  ])
    expect(verdict(line, policy), line.slice(0, 20)).not.toBe("allow");
});
