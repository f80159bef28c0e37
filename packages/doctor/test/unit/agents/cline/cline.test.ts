import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { cline } from "../../../../src/agents/cline/index.ts";
import type { SessionPlace } from "../../../../src/contract/agent.ts";
import { readConversations } from "../../../../src/conversation/conversation.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../../src/files/door.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { kindsIn, recordsOf } from "../agent-suite.ts";
import { describeDocumentAgent } from "../document-suite.ts";
import { SESSIONS, TASKS } from "./sessions.ts";

describeDocumentAgent({ agent: cline, subjects: SESSIONS, list: "messages", seed: 7_100 });
// Messages of the extension have no ids, and stand on one line.
describeDocumentAgent({ agent: cline, subjects: TASKS, list: null, seed: 7_200, without: ["CRLF", "a message twice"] });

const root = mkdtempSync(join(tmpdir(), "holdfast-cline-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const backups = join(root, "backups");

const at = (path: string): SessionPlace => {
  using door = new Door();
  return [...cline.find(path, door)][0]!;
};
const named = (subjects: typeof SESSIONS, part: string, folder: string): string =>
  subjects.find(({ name }) => name.includes(part))!.place(mkdtempSync(join(root, folder)));
const CALLS = "1795123365783_kgih4";
const spoken = async (path: string): Promise<string> =>
  JSON.stringify((await recordsOf(cline, at(path))).flatMap(({ units }) => units));

describe("Cline: what is nowhere in the file", () => {
  test.each(["empty", "zeros"])("a session whose file is %s comes back from the search index", async (what) => {
    const path = named(SESSIONS, CALLS, what);
    writeFileSync(path, what === "empty" ? "" : Buffer.alloc(7_000));
    expect(kindsIn(await diagnose(cline, at(path)))).toContain(what === "empty" ? "empty-file" : "nul-run");
    const fixed = await fix(cline, at(path), { backups });
    expect(kindsIn(fixed!.diagnosis)).toEqual([]);
    const said = await spoken(path);
    for (const text of [
      "Look around in this folder.",
      "I look.",
      "call_1_0_0",
      "run_commands",
      "one heron",
      "There is one heron",
    ])
      expect(said).toContain(text);
    // The index has no names of fields: that the input is lost is said in its place.
    expect(said).toContain("The input of this call was lost");
    expect(fixed!.plan.lost).not.toEqual([]);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ version: 1, sessionId: CALLS });
    expect(await fix(cline, at(path), { backups })).toBe(null);
  });

  test("zero bytes over the end of a message and the beginning of the next lose neither", async () => {
    const path = named(SESSIONS, CALLS, "seam");
    const bytes = readFileSync(path);
    const seam = bytes.indexOf('"tool_use_id": "call_1_1_0"');
    writeFileSync(path, bytes.fill(0, seam - 250, seam - 50));
    expect(kindsIn((await fix(cline, at(path), { backups }))!.diagnosis)).toEqual([]);
    expect(await spoken(path)).toContain("File created successfully");
  });

  test("a task whose conversation is empty comes back from what was shown", async () => {
    const path = named(TASKS, CALLS, "task");
    for (const [text, kind] of [
      ["", "empty-file"],
      ["[]", "stub"],
    ] as const) {
      writeFileSync(path, text);
      expect(kindsIn(await diagnose(cline, at(path)))).toContain(kind);
      const fixed = await fix(cline, at(path), { backups });
      expect(kindsIn(fixed!.diagnosis)).toEqual([]);
      const said = await spoken(path);
      for (const words of ["Look around in this folder.", "I look.", "one heron", "There is one heron"])
        expect(said).toContain(words);
    }
  });

  test("a task that is not there is made again", async () => {
    const path = named(TASKS, CALLS, "gone");
    rmSync(path);
    expect(kindsIn(await diagnose(cline, at(dirname(path))))).toContain("empty-file");
    expect(kindsIn((await fix(cline, at(dirname(path)), { backups }))!.diagnosis)).toEqual([]);
    expect(await spoken(path)).toContain("There is one heron");
  });

  test("what was shown is made from the conversation", async () => {
    const path = named(TASKS, CALLS, "shown");
    const shown = join(dirname(path), "ui_messages.json");
    writeFileSync(shown, "");
    expect(kindsIn(await diagnose(cline, at(path)))).toEqual(["empty-file"]);
    expect(kindsIn((await fix(cline, at(path), { backups }))!.diagnosis)).toEqual([]);
    expect(readFileSync(shown, "utf8")).toContain("There is one heron");
  });

  test.each([
    ["lost", (items: object[]) => JSON.stringify(items.slice(0, 1))],
    ["torn", (items: object[]) => JSON.stringify(items).slice(0, -20)],
    ["empty", () => ""],
  ])("an entry in the list of tasks that is %s is made again, and the others stay", async (_, harm) => {
    const path = named(TASKS, CALLS, "history");
    const file = join(dirname(path), "../../state/taskHistory.json");
    const before = JSON.parse(readFileSync(file, "utf8")) as object[];
    writeFileSync(file, harm(before));
    expect(kindsIn(await diagnose(cline, at(path)))).toEqual(["index-missing"]);
    expect(kindsIn((await fix(cline, at(path), { backups }))!.diagnosis)).toEqual([]);
    const items = JSON.parse(readFileSync(file, "utf8")) as object[];
    if (harm(before) !== "") expect(items[0]).toEqual(before[0]);
    expect(items.at(-1)).toMatchObject({ id: at(path).id, task: expect.stringContaining("Look around") });
  });
});

interface Message {
  role: string;
  content: { type: string; input?: unknown; content?: unknown }[];
}

describe("Cline: conversations", () => {
  test.each([
    [
      "call-without-result",
      (messages: Message[]) =>
        messages.filter(({ content }) => content[0]!.type !== "tool_result" || content === messages.at(-2)!.content),
    ],
    [
      "result-without-call",
      (messages: Message[]) =>
        messages.map((message) => ({ ...message, content: message.content.filter(({ type }) => type !== "tool_use") })),
    ],
    ["result-before-call", (messages: Message[]) => [messages[0]!, messages[2]!, messages[1]!, ...messages.slice(3)]],
    [
      "bad-tool-input",
      (messages: Message[]) =>
        messages.map((message) => ({
          ...message,
          content: message.content.map((block) => (block.type === "tool_use" ? { ...block, input: null } : block)),
        })),
    ],
    [
      "poisoned-result",
      (messages: Message[]) =>
        messages.map((message) => ({
          ...message,
          content: message.content.map((block) =>
            block.type === "tool_result"
              ? { ...block, content: `\u0000\u0001PNG\ud800${"\u0000".repeat(200)}` }
              : block,
          ),
        })),
    ],
  ])("%s", async (kind, harm) => {
    for (const subjects of [SESSIONS, TASKS]) {
      const path = named(subjects, CALLS, kind);
      const document = JSON.parse(readFileSync(path, "utf8")) as { messages: Message[] } | Message[];
      const harmed = Array.isArray(document) ? harm(document) : { ...document, messages: harm(document.messages) };
      writeFileSync(path, JSON.stringify(harmed));
      expect(kindsIn(await diagnose(cline, at(path)))).toContain(kind);
      const fixed = await fix(cline, at(path), { backups });
      expect(kindsIn(fixed!.diagnosis)).toEqual([]);
      expect(await spoken(path)).toContain("There is one heron");
      expect(await fix(cline, at(path), { backups })).toBe(null);
    }
  });

  test("is imported as it was said", async () => {
    for (const subjects of [SESSIONS, TASKS]) {
      using door = new Door();
      const { conversations } = await readConversations(cline, at(named(subjects, CALLS, "import")), door);
      const blocks = conversations[0]!.messages.flatMap(({ content }) =>
        typeof content === "string" ? [] : content.map(({ type }) => type),
      );
      expect(blocks).toEqual([
        "text",
        "thinking",
        "text",
        "tool_use",
        "tool_result",
        "text",
        "tool_use",
        "tool_result",
        "text",
      ]);
    }
  });

  test("odd but legal: text as a string, unknown blocks and fields, equal prompts, a call that was interrupted", async () => {
    const path = named(TASKS, CALLS, "odd");
    const messages = [
      { role: "user", content: "go on" },
      {
        role: "assistant",
        content: [
          { type: "hologram", data: [] },
          { type: "tool_use", id: "a", name: "x", input: {} },
        ],
        later: { "\u2028": null },
      },
      { role: "user", content: [{ type: "text", text: "[TASK RESUMPTION]" }] },
      { role: "assistant", content: "yes" },
      { role: "user", content: "go on" },
      { role: "user", content: "go on" },
      { role: "assistant", content: [] },
    ];
    writeFileSync(path, ` ${JSON.stringify(messages, null, 1)}\n\n`);
    expect(kindsIn(await diagnose(cline, at(path)))).toEqual([]);
  });

  test("a session that was only begun is no problem", async () => {
    const folder = mkdtempSync(join(root, "1795000000000_new"));
    const id = folder.split("/").at(-1)!;
    writeFileSync(join(folder, `${id}.json`), JSON.stringify({ version: 1, session_id: id, status: "idle" }));
    expect(kindsIn(await diagnose(cline, at(folder)))).toEqual([]);
  });
});
