import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { AgentPermission, callsOf, outcomeFor } from "../../../src/acp/agent-permission.ts";
import { agentWords } from "../../../src/acp/agent-words.ts";

const diff = (path: string, oldText: string | null) => ({ type: "diff", path, oldText, newText: "new" });

test("a call of an agent is judged by the rule for what it says of itself", () => {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), "hf-rules-")));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const rules = {
    allow: ["shell(npm test)", "write(new/**)", "edit(src/**)", "mcp__git__log"],
    ask: [],
    deny: ["edit(src/x)"],
  };
  const permission = new AgentPermission(rules, "memory:");
  const at = (name: string): string => join(cwd, name);
  const judged = (toolCall: object): string => permission.judge(cwd, { toolCall }).verdict;
  const shell = (command?: unknown) => judged({ kind: "execute", rawInput: { command } });
  expect([
    shell("npm test"),
    shell("npm test; rm x"),
    shell(["npm", "test"]),
    shell(["bash", "-lc", "npm test"]),
  ]).toEqual([...["allow", "ask", "allow", "allow"]]);
  // An agent that does not say what it runs could run anything.
  expect([shell(), shell(7), judged({ kind: "execute", title: "npm test…" })]).toEqual(["ask", "ask", "ask"]);
  const titled = { kind: "execute", title: "npm test" };
  expect([judged(titled), judged({ ...titled, rawInput: {} }), judged({ ...titled, title: "npm test; rm x" })]).toEqual(
    [...["allow", "ask", "ask"]],
  );
  expect(judged({ kind: "edit", content: [diff(at("new/a"), null)] })).toBe("allow");
  expect(judged({ kind: "edit", content: [diff(at("src/a"), "old")] })).toBe("allow");
  expect(judged({ kind: "edit", content: [diff(at("src/a"), "old"), diff(at("elsewhere"), "old")] })).toBe("ask");
  expect(judged({ kind: "edit", content: [diff(at("src/a"), "old"), diff(at("src/x"), "old")] })).toBe("deny");
  expect(judged({ kind: "edit", title: "src/a" })).toBe("ask");
  expect(judged({ kind: "edit", content: [diff(at("src/../../etc"), "old")] })).toBe("ask");
  expect(judged({ kind: "read", locations: [{ path: at("a") }] })).toBe("allow");
  expect(judged({ kind: "read", locations: [{ path: "/etc/passwd" }] })).toBe("ask");
  expect(judged({ kind: "other", name: "mcp__git__log" })).toBe("allow");
  expect([judged({ kind: "delete", locations: [{ path: at("new/a") }] }), judged({}), judged([])]).toEqual([
    ...["ask", "ask", "ask"],
  ]);
  expect(permission.judge(cwd, { toolCall: { kind: "execute", rawInput: { command: "npm run x" } } })).toMatchObject({
    flag: "--allow 'shell(npm run x)'",
  });
  expect(new AgentPermission({ ...rules, allow: ["*"] }, "memory:").judge(cwd, {}).verdict).toBe("allow");
});

test("what an agent says is not believed to be of a form", () => {
  for (const toolCall of [null, 1, "x", [], { kind: 1, rawInput: "x", locations: 3, content: [null, 1] }])
    expect(callsOf(toolCall)).toHaveLength(1);
});

test("the answer for this call alone is chosen", () => {
  const options = ["allow_always", "allow_once", "reject_always", "reject_once"].map((kind) => ({
    kind,
    optionId: kind,
  }));
  expect(outcomeFor({ options }, true)).toEqual({ outcome: "selected", optionId: "allow_once" });
  expect(outcomeFor({ options }, false)).toEqual({ outcome: "selected", optionId: "reject_once" });
  expect(outcomeFor({ options: [options[0]] }, true)).toEqual({ outcome: "selected", optionId: "allow_always" });
  expect(outcomeFor({ options: [options[2]] }, false)).toEqual({ outcome: "cancelled" });
  expect(outcomeFor({ options: "x" }, true)).toEqual({ outcome: "cancelled" });
});

test("an agent's command is split as a shell would, and nothing else of a shell is done", () => {
  expect(agentWords(`gemini  --acp`)).toEqual(["gemini", "--acp"]);
  expect(agentWords(`a 'b c' "d \\"e\\" $f" g\\ h '' i'j'"k"`)).toEqual(["a", "b c", 'd "e" $f', "g h", "", "ijk"]);
  for (const line of ["", "  ", "a 'b", 'a "b', "a; b", "a && b", "a | b", "a > b", "a $b", "a `b`"])
    expect(() => agentWords(line), line).toThrow("is not one command");
});
