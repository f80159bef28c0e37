import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EditorFiles, EditorTerminal, EditorTerminals } from "@holdfast/server/internal/contract";
import { afterEach, expect, test } from "vitest";
import { secretHider } from "../../../../src/mcp/hide-secrets.ts";
import { offeredServers } from "../../../../src/mcp-settings/offered-servers.ts";
import { isServerName } from "../../../../src/mcp-settings/tool-names.ts";
import { inspectTarget } from "../../../../src/tools/files/call-target.ts";
import { editFile } from "../../../../src/tools/files/edit.ts";
import { readText } from "../../../../src/tools/files/read.ts";
import { writeFile } from "../../../../src/tools/files/write.ts";
import { decide } from "../../../../src/tools/permission/decide.ts";
import { runInEditor, terminalCommand } from "../../../../src/tools/shell/editor-terminal.ts";
import { EDITOR_TERMINAL, findCommand } from "../../../../src/tools/shell/surviving-commands.ts";
import { planInSummary, planOf, planWords, withPlan } from "../../../../src/transcript/plan.ts";
import { SUMMARY_HEAD } from "../../../../src/transcript/summary.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-editor-")));
const work = join(root, "work");
mkdirSync(work);
afterEach(() => {
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
});
process.once("exit", () => rmSync(root, { recursive: true, force: true }));

/** What the editor has, by path; and what it was asked for. */
function editorWith(texts: Record<string, string>): EditorFiles & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    read: async (path) => {
      asked.push(`read ${path}`);
      const text = texts[path];
      if (text === undefined) throw new Error("no such file");
      return text;
    },
    write: async (path, text) => {
      asked.push(`write ${path}`);
      texts[path] = text;
    },
  };
}

test("files outside the folder, large ones and those that are not text stay on disk", async () => {
  const outside = join(root, "outside.txt");
  writeFileSync(outside, "outside\n");
  writeFileSync(join(work, "binary"), new Uint8Array([1, 0, 2]));
  writeFileSync(join(work, "large"), "x".repeat(5 * 1024 * 1024));
  const editor = editorWith({});
  const context = { cwd: work, editor };
  expect(await readText(context, { path: outside })).toBe("outside\n");
  expect(await readText(context, { path: "binary" })).toContain("a binary file");
  expect(await readText(context, { path: "large", limit: 1 })).toContain("x");
  await writeFile(context, { path: outside, content: "changed\n" });
  await writeFile(context, { path: "large", content: "y".repeat(5 * 1024 * 1024) });
  await expect(writeFile(context, { path: ".", content: "" })).rejects.toThrow("is a folder");
  expect(editor.asked).toEqual([]);
  expect(readFileSync(outside, "utf8")).toBe("changed\n");
});

test("a text that the editor does not give is read from disk, but not edited there", async () => {
  writeFileSync(join(work, "a.txt"), "on disk\n");
  const context = { cwd: work, editor: editorWith({}) };
  expect(await readText(context, { path: "a.txt" })).toBe("on disk\n");
  await expect(editFile(context, { path: "a.txt", old: "on", new: "off" })).rejects.toThrow(
    "did not give the text of a.txt (no such file). Nothing was changed.",
  );
  await expect(editFile(context, { path: "none.txt", old: "on", new: "off" })).rejects.toThrow("does not exist");
  expect(readFileSync(join(work, "a.txt"), "utf8")).toBe("on disk\n");
});

test("a file that is only in the editor can be read and edited; the editor knows it by the folder's own name", async () => {
  const link = join(root, "link");
  symlinkSync(work, link);
  try {
    const path = join(link, "new.txt");
    const texts = { [path]: "one\ntwo\n" };
    const editor = editorWith(texts);
    expect(await readText({ cwd: link, editor }, { path: "new.txt", offset: 2 })).toContain("two");
    expect(await editFile({ cwd: link, editor }, { path: "new.txt", old: "two", new: "2" })).toContain("line 2");
    expect(texts[path]).toBe("one\n2\n");
    expect(new Set(editor.asked)).toEqual(new Set([`read ${path}`, `write ${path}`]));
  } finally {
    rmSync(link);
  }
});

test("an editor that offers only one of reading and writing is not used for edits", async () => {
  writeFileSync(join(work, "a.txt"), "one\n");
  const editor = editorWith({ [join(work, "a.txt")]: "unsaved\n" });
  for (const half of [
    { ...editor, read: null },
    { ...editor, write: null },
  ])
    await editFile({ cwd: work, editor: half }, { path: "a.txt", old: "one", new: "one!" }).then(
      () => writeFileSync(join(work, "a.txt"), "one\n"),
      (error: unknown) => expect.unreachable(String(error)),
    );
  expect(editor.asked.filter((one) => one.startsWith("write"))).toEqual([]);
});

test("an edit stops if the editor's text changes before it is written", async () => {
  const path = join(work, "a.txt");
  const texts = { [path]: "one\n" };
  const editor = editorWith(texts);
  const watch = {
    check: async () => {
      texts[path] = "one, typed\n";
    },
    changed: async () => {},
  };
  await expect(editFile({ cwd: work, editor }, { path, old: "one", new: "two" }, watch)).rejects.toThrow(
    "was changed in the editor during this edit",
  );
  expect(editor.asked).not.toContain(`write ${path}`);
});

test("what is approved is the editor's text, saved or not", async () => {
  const path = join(work, "a.txt");
  writeFileSync(path, "on disk\n");
  const texts = { [path]: "unsaved\n" };
  const editor = editorWith(texts);
  const call = { name: "edit", input: { path: "a.txt", old: "a", new: "b" } };
  const before = await inspectTarget({ cwd: work, editor }, call);
  expect(before.bytes?.toString()).toBe("unsaved\n");
  // Saving the text changes nothing about it.
  writeFileSync(path, "unsaved\n");
  expect((await inspectTarget({ cwd: work, editor }, call)).digest).toBe(before.digest);
  texts[path] = "typed\n";
  expect((await inspectTarget({ cwd: work, editor }, call)).digest).not.toBe(before.digest);
});

interface Staged extends EditorTerminals {
  readonly asked: string[];
  readonly end: (how: { code: number | null; by: string | null }) => void;
  readonly lose: (error: Error) => void;
}

function staged(output = "printed\n"): Staged {
  const asked: string[] = [];
  const { promise: ended, resolve: end, reject: lose } = Promise.withResolvers<Awaited<EditorTerminal["ended"]>>();
  return {
    ...{ asked, end, lose },
    create: async () => {
      asked.push("create");
      return {
        ended,
        output: async () => ({ text: output, isCut: false }),
        kill: async () => {
          asked.push("kill");
          end({ code: null, by: "SIGKILL" });
        },
        release: async () => {
          asked.push("release");
        },
      };
    },
  };
}

const recorded: unknown[] = [];
const context = {
  cwd: work,
  env: { PATH: "/bin" },
  process: async (_call: string, process: unknown) => {
    recorded.push(process);
  },
};

test("a command in the editor's terminal: its output without control characters, its status, and always a release", async () => {
  const terminals = staged("\u001b[32mok\u001b[0m\r\n");
  terminals.end({ code: 2, by: null });
  const result = await runInEditor(context, terminals, "c1", { command: "x", seconds: 5 });
  expect(result).toBe("ok\n[exit status 2]");
  expect(terminals.asked).toEqual(["create", "release"]);
  expect(recorded.at(-1)).toEqual({ pid: process.pid, started: EDITOR_TERMINAL });
});

test("a terminal that is lost, or not confirmed, leaves an unknown outcome; one that takes too long is killed", async () => {
  const lost = staged();
  lost.lose(new Error("connection closed"));
  const run = (terminals: EditorTerminals, seconds = 5) =>
    runInEditor(context, terminals, "c1", { command: "x", seconds });
  await expect(run(lost)).rejects.toThrow(/lost its terminal \(connection closed\): outcome unknown/);
  expect(lost.asked).toEqual(["create", "release"]);
  const create = () => Promise.reject(new Error("refused"));
  await expect(run({ create })).rejects.toThrow(/did not confirm that it started the command \(refused\)/);
  const slow = staged();
  await expect(run(slow, 0.01)).rejects.toThrow(/took longer than 0.01 s and was stopped. It printed:\nprinted/);
  expect(slow.asked).toEqual(["create", "kill", "release"]);
});

test("a terminal that comes after the turn was stopped is killed and released", async () => {
  const late = Promise.withResolvers<EditorTerminal>();
  const terminals = staged();
  const stop = new AbortController();
  const run = runInEditor(context, { create: () => late.promise }, "c1", {
    ...{ command: "x", seconds: 5 },
    signal: stop.signal,
  });
  await Promise.resolve();
  setImmediate(() => stop.abort());
  await expect(run).rejects.toThrow("may have taken effect");
  late.resolve(await terminals.create("c1", terminalCommand(context, "x")));
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(terminals.asked).toEqual(["create", "kill", "release"]);
});

test("a command whose agent died while it ran in the editor's terminal may have run", async () => {
  const found = await findCommand(work, "c1", { pid: process.pid, started: EDITOR_TERMINAL });
  expect(found).toMatchObject({ kind: "unknown", running: false });
});

test.skipIf(process.platform === "win32")(
  "a command in the editor's terminal sees only what other commands see",
  () => {
    const env = { PATH: process.env["PATH"], LANG: "de_DE'; $(touch x)", "ProgramFiles(x86)": "c:" };
    const { command, args, env: given } = terminalCommand({ cwd: work, env }, 'env; echo "it\'s $LANG"');
    const printed = execFileSync(command, [...args], {
      env: { ...given, SECRET: "1", TERM: "xterm" },
      encoding: "utf8",
    });
    expect(printed).not.toMatch(/SECRET|HOLDFAST_RUN/);
    expect(printed).toContain("TERM=xterm");
    expect(printed).toContain("it's de_DE'; $(touch x)");
  },
);

test("servers of an editor get names that tools can have, and that no other server has", () => {
  const server = { command: "x", args: [], env: {} };
  const names = ["My Server", "my_server", "GitHub", "日本", "", "a__b_", "x".repeat(60), `${"x".repeat(60)}y`];
  const given = offeredServers(
    names.map((name) => ({ name, ...server })),
    ["github"],
  );
  const made = Object.keys(given);
  expect(made).toHaveLength(names.length);
  expect(made.every(isServerName), made.join()).toBe(true);
  expect(made.slice(0, 5)).toEqual(["My_Server", "my_server-2", "GitHub-2", "server", "server-2"]);
  expect(new Set([...made, "github"].map((name) => name.toLowerCase())).size).toBe(names.length + 1);
});

test("the keys of a server are hidden in whatever it says; other settings are not", () => {
  const common = { timeoutSeconds: 1, enabled: true };
  const env = { API_KEY: "abcdefgh12345", ROOT: "/home/me/project", SHORT_TOKEN: "1" };
  const hide = secretHider({ ...common, command: "x", args: [], env }, (text) => text);
  const said = { content: [{ type: "text", text: "key abcdefgh12345 in /home/me/project, 1" }], isError: false };
  expect(hide(said)).toEqual({
    content: [{ type: "text", text: "key … in /home/me/project, 1" }],
    isError: false,
  });
  const remote = secretHider(
    { ...common, url: "http://x", headers: { Authorization: "Bearer tokentoken" } },
    (text) => text,
  );
  expect(remote("refused tokentoken")).toBe("refused …");
});

test("a plan is what its last call says; it is in the summary of a conversation that is replaced", () => {
  const steps = [
    { content: "read\nthe notes", status: "completed", priority: "high" },
    { content: "write", status: "in_progress" },
    { content: "check", status: "pending" },
  ];
  const plan = planOf({ name: "plan", input: { steps } })!;
  expect(planWords(plan)).toBe("[x] read the notes\n[>] write\n[ ] check");
  const summary = withPlan(`${SUMMARY_HEAD}\n\nText.`, plan);
  expect(planInSummary(summary)?.map(({ content, status }) => `${status} ${content}`)).toEqual([
    "completed read the notes",
    "in_progress write",
    "pending check",
  ]);
  expect(planInSummary("The plan at that point:\n[x] a")).toBe(null);
  expect(withPlan("Text.", [])).toBe("Text.");
  for (const input of [null, {}, { steps: [{}] }, { steps: [{ content: 1, status: "pending" }] }])
    expect(planOf({ name: "plan", input })).toBe(null);
});

test("a plan needs no approval, unless a rule says so", () => {
  const call = { name: "plan", input: { steps: [] } };
  const policy = { allow: [], ask: [], deny: [] };
  expect(decide(call, { cwd: work, policy }).verdict).toBe("allow");
  expect(decide(call, { cwd: work, policy: { ...policy, deny: ["plan"] } }).verdict).toBe("deny");
});
