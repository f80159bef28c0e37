import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checkRule, decide } from "../../../../src/tools/permission/decide.ts";

/** The tables of docs/guides/permissions.md are carried out. */

const guide = readFileSync(new URL("../../../../../../docs/guides/permissions.md", import.meta.url), "utf8");
const [allowing = "", aboutDenying = ""] = guide.split("### Denying commands");
const [denying = "", doubtful = ""] = aboutDenying.split("**Where the meaning is not certain");

function rowsOf(text: string): [name: string, rules: string[], first: string[], second: string[]][] {
  const spans = (cell = ""): string[] => [...cell.matchAll(/`([^`]+)`/gu)].map(([, span]) => span!);
  const lines = text.split("\n").filter((line) => /^\| (?:`|\(none\))/u.test(line));
  return lines.map((line) => {
    const [rules, first, second] = line.split(" | ");
    return [rules!.slice(2), spans(rules), spans(first), spans(second)];
  });
}

function verdict(example: string, policy: { allow: readonly string[]; deny?: readonly string[] }): string {
  const [, tool, path] = /^(read|write|edit|list|search) (\S+)$/u.exec(example) ?? [];
  const call =
    tool === undefined
      ? { name: "shell", input: { command: example } }
      : { name: tool, input: { path, pattern: "x", content: "" } };
  const circumstances = { cwd: "/work/project", home: "/home/me", platform: "linux" };
  return decide(call, { ...circumstances, policy: { ask: [], deny: [], ...policy } }).verdict;
}

test("the guide has its tables, with examples in each row, and rules that are taken", () => {
  expect(rowsOf(allowing).length).toBeGreaterThan(15);
  expect(rowsOf(denying).length).toBeGreaterThan(5);
  expect(rowsOf(doubtful).length).toBeGreaterThan(5);
  for (const [name, rules, first, second] of [...rowsOf(allowing), ...rowsOf(denying)]) {
    expect(Math.min(first.length, second.length), name).toBeGreaterThan(0);
    for (const rule of rules) expect(checkRule(rule, "allow", "linux"), rule).toBeNull();
  }
});

test.each(rowsOf(allowing))("as the guide says, with --allow %s", (_, allow, free, asked) => {
  for (const example of free) expect(verdict(example, { allow }), example).toBe("allow");
  for (const example of asked) expect(verdict(example, { allow }), example).toBe("ask");
});

test.each(rowsOf(denying))("as the guide says, with --deny %s", (_, deny, denied, others) => {
  const allow = ["*", ...["git", "npm", "rm"].map((name) => `shell(${name} **)`)];
  for (const example of denied) expect(verdict(example, { allow, deny }), example).toBe("deny");
  for (const example of others) expect(verdict(example, { allow, deny }), example).toBe("allow");
});

test.each(rowsOf(doubtful))("as the guide says, the agent asks beside --deny %s", (_, deny, asked) => {
  const names = ["git", "npm", "rm", "sh", "xargs", "docker", "cat"];
  const allow = ["*", ...names.map((name) => `shell(${name} **)`)];
  expect(asked.length).toBeGreaterThan(0);
  for (const example of asked) expect(verdict(example, { allow, deny }), example).toBe("ask");
});
