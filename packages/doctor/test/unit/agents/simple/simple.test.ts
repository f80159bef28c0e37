import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { AGENTS } from "../../../../src/agents/list.ts";
import { simple } from "../../../../src/agents/simple/index.ts";
import { readConversations } from "../../../../src/conversation/conversation.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { sessionsAt } from "../../../../src/diagnosis/sessions.ts";
import { Door } from "../../../../src/files/door.ts";
import { kindsIn } from "../agent-suite.ts";
import { CONVERSATIONS } from "../conversations.ts";
import { describeDocumentAgent } from "../document-suite.ts";

for (const indent of [0, 2])
  describeDocumentAgent({
    agent: simple,
    list: "messages",
    seed: 7_300 + indent,
    // Its messages have no ids.
    without: ["a message twice", ...(indent === 0 ? ["CRLF"] : [])],
    subjects: CONVERSATIONS.map(({ name, messages }) => ({
      name: `${name}, indented by ${indent}`,
      place(folder) {
        const path = join(folder, `${name}.json`);
        const said = messages.map(({ ts, ...message }) => ({ ...message, timestamp: new Date(ts).toISOString() }));
        writeFileSync(
          path,
          JSON.stringify({ id: name, cwd: "/work", title: "Birds", messages: said, unknown: [1] }, null, indent),
        );
        return path;
      },
    })),
  });

test("every level of the format is read, and ids that are left out are made up in order", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-simple-"));
  const path = join(folder, "run.json");
  const messages = [
    { role: "User", content: "run the tests" },
    {
      role: "assistant",
      content: [
        { type: "tool_use", name: "Bash", input: { command: "a" } },
        { type: "tool_use", name: "Bash" },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", content: "first" },
        { type: "tool_result", content: ["second"], is_error: true },
      ],
    },
    { role: "assistant", content: "done" },
    { role: "narrator", content: 7 },
  ];
  try {
    writeFileSync(path, JSON.stringify({ messages, title: "Tests" }));
    using door = new Door();
    const found = [];
    for await (const finding of sessionsAt(path, AGENTS, { environment: {}, home: "/nowhere" }, door))
      found.push(finding);
    expect(found.map(({ agent }) => agent?.name)).toEqual(["simple"]);
    const session = found[0]!.session!;
    expect(kindsIn(await diagnose(simple, session))).toEqual([]);
    const { conversations, title } = await readConversations(simple, session, door);
    expect(title).toBe("Tests");
    expect(conversations[0]!.messages.slice(1, 3)).toMatchObject([
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "call-1", input: { command: "a" } },
          { type: "tool_use", id: "call-2", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { tool_use_id: "call-1", content: "first" },
          { tool_use_id: "call-2", is_error: true },
        ],
      },
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
