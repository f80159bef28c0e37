import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import { writeFile } from "../../../../src/tools/files/write.ts";
import { realPath } from "../../../../src/tools/paths/real-path.ts";
import { decide } from "../../../../src/tools/permission/decide.ts";

/** "Never silently more": what the rules allow is carried out, and what it has touched is looked at. */

const seed = seedOf(import.meta.url, "unit");
const here = place();
const root = realpathSync(here.path);
afterAll(() => here[Symbol.dispose]());

const none = { allow: [], ask: [], deny: [] };

test("every call is answered, whatever its input and the rules are", () => {
  const rule = fc.oneof(
    fc.string(),
    fc.constantFrom("*", "read", "write(src/**)", "shell(npm *)", "shell(", "read(**/..)", "shell(=*)"),
  );
  const rules = fc.array(rule, { maxLength: 3 });
  const input = fc.oneof(
    fc.anything(),
    fc.record({ path: fc.string(), command: fc.string() }),
    fc.record({ path: fc.string({ unit: "binary" }), command: fc.string({ unit: "binary" }) }),
  );
  const name = fc.oneof(fc.string(), fc.constantFrom("read", "write", "edit", "list", "search", "shell"));
  holds(
    fc.property(name, input, rules, rules, rules, (name, input, allow, ask, deny) => {
      const decision = decide({ name, input }, { cwd: root, policy: { allow, ask, deny } });
      expect(["allow", "ask", "deny"]).toContain(decision.verdict);
      expect(decision.summary).not.toMatch(/\p{Cc}/u);
    }),
    seed,
    1000,
  );
});

test("the suggested rule allows this call", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", minLength: 1 }),
    fc
      .array(fc.constantFrom("a", "*", "=", " ", "/", "..", "~", "(", ")", "'", "\n", "$", ";", ".env"), {
        minLength: 1,
      })
      .map((all) => all.join("")),
  );
  holds(
    fc.property(text, (words) => {
      for (const [name, input] of [
        ["shell", { command: words }],
        ["write", { path: words, content: "" }],
        ["search", { path: words, pattern: "x" }],
      ] as const) {
        if (words.includes("\0") || words.trim() === "") continue;
        const { suggestion } = decide({ name, input }, { cwd: root, policy: none });
        const { verdict } = decide({ name, input }, { cwd: root, policy: { ...none, allow: [suggestion] } });
        expect(verdict, `${name} ${JSON.stringify(words)} by ${suggestion}`).toBe("allow");
      }
    }),
    seed,
    500,
  );
});

/** What a rule names, by a reading of its own. */
const NAMED: readonly [rule: string, names: (path: string, cwd: string) => boolean][] = [
  ["write", (path, cwd) => path.startsWith(`${cwd}/`)],
  ["write(a/**)", (path, cwd) => path.startsWith(`${cwd}/a/`) || path === `${cwd}/a`],
  ["write(a/*)", (path, cwd) => dirname(path) === `${cwd}/a`],
  ["write(**/b)", (path, cwd) => path.startsWith(`${cwd}/`) && path.endsWith("/b")],
  ["write(a/b)", (path, cwd) => path === `${cwd}/a/b`],
  ["write(=a/b)", (path, cwd) => path === `${cwd}/a/b`],
  ["write(../other/**)", (path, cwd) => path.startsWith(`${resolve(cwd, "../other")}/`)],
];

function filesIn(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stat = lstatSync(path);
    if (stat.isDirectory()) for (const [below, content] of filesIn(path)) found.set(below, content);
    else if (stat.isFile()) found.set(path, readFileSync(path, "utf8"));
  }
  return found;
}

test("whatever links and dots a path is made of, an allowed write changes no file that the rule does not name", async () => {
  const name = fc.constantFrom("a", "b", "c", "..", ".", "", "link", "far", "up", "other");
  const link = fc.tuple(
    fc.constantFrom("work/a/link", "work/link", "work/a/far", "work/far", "work/up", "work/a/b", "other/link"),
    fc.constantFrom(
      "..",
      "../..",
      "a",
      "b",
      "../other",
      "../../other/x",
      "../work/a",
      "c/none",
      "link",
      "ABSOLUTE/other",
    ),
  );
  const path = fc.tuple(fc.constantFrom("", "", "", "CWD/", "ROOT/"), fc.array(name, { minLength: 1, maxLength: 5 }));
  let carriedOut = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(link, { maxLength: 4 }),
      path,
      fc.constantFrom(...NAMED),
      async (links, [start, names], [rule, isNamed]) => {
        const base = mkdtempSync(join(root, "tree-"));
        try {
          const cwd = join(base, "work");
          for (const folder of ["work/a", "work/c", "other"]) mkdirSync(join(base, folder), { recursive: true });
          for (const file of ["work/c/x", "other/b", "other/x"]) writeFileSync(join(base, file), "old");
          for (const [at, to] of links) {
            const target = to.replace("ABSOLUTE", base);
            if (!lstatSync(join(base, at), { throwIfNoEntry: false })) symlinkSync(target, join(base, at));
          }
          const given = start.replace("CWD", cwd).replace("ROOT", base) + names.join("/");
          const input = { path: given, content: "new" };
          const { verdict } = decide({ name: "write", input }, { cwd, policy: { ...none, allow: [rule] } });
          if (verdict !== "allow") return;
          const before = filesIn(base);
          await writeFile({ cwd }, input).catch(() => "a folder, or a way through a file");
          for (const [file, content] of filesIn(base)) {
            if (before.get(file) === content) continue;
            carriedOut += 1;
            expect(isNamed(file, cwd), `${file} by ${rule}`).toBe(true);
          }
        } finally {
          rmSync(base, { recursive: true, force: true });
        }
      },
    ),
    { seed, numRuns: 600 },
  );
  expect(carriedOut, "some were allowed, and did something").toBeGreaterThan(20);
});

test("a path leads where the kernel says that it leads", () => {
  const base = mkdtempSync(join(root, "real-"));
  mkdirSync(join(base, "a/b"), { recursive: true });
  symlinkSync("../..", join(base, "a/b/up"));
  symlinkSync("b", join(base, "a/to"));
  symlinkSync(join(base, "a"), join(base, "abs"));
  const name = fc.constantFrom("a", "b", "up", "to", "abs", "..", ".", "");
  holds(
    fc.property(fc.array(name, { maxLength: 8 }), (names) => {
      const path = names.join("/");
      let real: string;
      try {
        // The kernel's own, which follows links one by one: the other takes `..` away first.
        real = realpathSync.native(`${base}/${path}`);
      } catch {
        return;
      }
      expect(realPath(base, path === "" || path.startsWith("/") ? `./${path}` : path)).toBe(real);
    }),
    seed,
    500,
  );
});

const shells = ["/bin/sh", "/bin/bash"].filter((path) => existsSync(path));

test("whatever a line is made of, what shell(ok *) allows runs ok alone, and writes no file", () => {
  const bin = join(root, "bin");
  const cwd = join(root, "lines");
  const marks = join(root, "marks");
  for (const folder of [bin, cwd, marks]) mkdirSync(folder);
  for (const name of ["ok", "evil"]) {
    writeFileSync(join(bin, name), `#!/bin/sh\n: > ${marks}/${name}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const piece = fc.constantFrom(
    ...[
      "ok",
      "ok ",
      "ok a",
      "evil",
      " evil",
      "a",
      " ",
      " ",
      "\t",
      "\n",
      ";",
      "&&",
      "||",
      "|",
      "&",
      "|&",
      "'",
      '"',
      "\\",
      "`",
    ],
    ...[
      "$(",
      ")",
      "(",
      "$X",
      "$",
      "{",
      "}",
      "#",
      "!",
      ">",
      "<",
      ">>",
      ">&",
      "2>&1",
      ">/dev/null",
      "<<",
      "f",
      "*",
      "?",
      "~",
      "=",
      "X=",
      "\r",
      "\u00a0",
    ],
    ...[
      "if ",
      "then ",
      "fi",
      "eval ",
      "exec ",
      ". ",
      "-",
      "\\\n",
      "\0",
      "{evil,x}",
      "`evil`",
      "$(evil)",
      '"`evil`"',
      "ok;",
      "ok\n",
      "2",
      "$'",
      "<(",
      "coproc ",
      "time ",
    ],
  );
  const pieces = fc.array(piece, { maxLength: 3 });
  const line = fc
    .tuple(
      fc.constantFrom("ok ", "ok", "ok a", " ok "),
      pieces,
      fc.constantFrom("evil", "evil ", " evil", "a", ""),
      pieces,
    )
    .map(([first, glue, other, rest]) => first + glue.join("") + other + rest.join(""));
  let carriedOut = 0;
  holds(
    fc.property(line, (command) => {
      const policy = { ...none, allow: ["shell(ok *)"] };
      if (decide({ name: "shell", input: { command } }, { cwd, policy }).verdict !== "allow") return;
      for (const shell of shells) {
        carriedOut += 1;
        const given = shell.endsWith("bash") ? ["--posix", "-c", command] : ["-c", command];
        spawnSync(shell, given, { cwd, env: { PATH: bin, X: "evil" }, stdio: "ignore" });
        expect(existsSync(join(marks, "evil")), `${shell}: ${JSON.stringify(command)}`).toBe(false);
        expect(readdirSync(cwd), `${shell}: ${JSON.stringify(command)}`).toEqual([]);
      }
    }),
    seed,
    1000,
  );
  expect(carriedOut, "some were allowed").toBeGreaterThan(50);
  expect(existsSync(join(marks, "ok"))).toBe(true);
}, 60_000);
