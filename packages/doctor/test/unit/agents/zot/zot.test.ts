import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { format } from "../../../../src/agents/zot/format.ts";
import { zot } from "../../../../src/agents/zot/index.ts";
import { fieldsOf, listIn } from "../../../../src/contract/shapes.ts";
import { readConversations } from "../../../../src/conversation/conversation.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../../src/files/door.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { harmAndFix, harmAndRead, kindsIn, type PlacedSession, sessionsIn } from "../agent-suite.ts";
import { CONVERSATIONS, type RecordedConversation } from "../conversations.ts";
import { LINE_DAMAGE, lineChanged, lineGone } from "../line-damage.ts";

/** Real conversations in the lines of zot, as its sources write them: the program was not to be had. */
function linesOf({ name, messages }: RecordedConversation): string[] {
  const id = `${createHash("sha256").update(name).digest("hex").slice(0, 8)}-1111-4111-8111-111111111111`;
  const started = "2026-05-06T18:46:29.123456789Z";
  const meta = { id, cwd: "/work", model: "heron-1", provider: "anthropic", started, version: "0.1" };
  const usage = { input_tokens: 1, output_tokens: 2, cost_usd: 0 };
  const said = messages.flatMap(({ role, content, ts }, at) => {
    const blocks = content.map((block): object => {
      if (block["type"] === "thinking") return { reasoning_id: `r${at}`, summary: block["thinking"] };
      if (block["type"] === "tool_use") return { id: block["id"], name: block["name"], arguments: block["input"] };
      if (block["type"] !== "tool_result") return { text: block["text"] };
      const output = block["content"];
      const text = typeof output === "string" ? output : JSON.stringify(output);
      return { call_id: block["tool_use_id"], content: [{ text }], is_error: false };
    });
    const isResult = content.some((block) => block["type"] === "tool_result");
    const time = new Date(ts).toISOString().replace("Z", "456789Z");
    return [
      { type: "message", message: { role: isResult ? "tool" : role, content: blocks, time } },
      ...(role === "assistant" ? [{ type: "usage", usage, cumulative: usage }] : []),
    ];
  });
  return [{ type: "meta", meta }, ...said, { type: "rename", title: "Birds" }].map((line) => JSON.stringify(line));
}

const root = mkdtempSync(join(tmpdir(), "holdfast-zot-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const backups = join(root, "backups");
const folder = join(root, ".local/state/zot/sessions/0123456789abcdef");

const sessions = (): PlacedSession[] => {
  mkdirSync(folder, { recursive: true });
  const all = CONVERSATIONS.map((conversation) => linesOf(conversation));
  for (const lines of all) {
    const { id } = fieldsOf(fieldsOf(JSON.parse(lines[0]!))["meta"]);
    writeFileSync(
      join(folder, `20260506-184629-${String(id).slice(0, 8)}.jsonl`),
      lines.map((line) => `${line}\n`).join(""),
    );
  }
  return sessionsIn(zot, root).map((session) => {
    const lines = all.find((each) => each[0]!.includes(session.id))!;
    const units = lines.map((line) =>
      (format.understand(JSON.parse(line))?.units ?? []).map((unit) => JSON.stringify(unit)),
    );
    return { ...session, lines, units };
  });
};

const blocksOf = (line: string) => listIn(fieldsOf(fieldsOf(JSON.parse(line))["message"])["content"]).map(fieldsOf);
const hasCall = (line: string): boolean => blocksOf(line).some((block) => block["name"] !== undefined);
const isResult = (line: string): boolean => line.includes('"role":"tool"');

/** Afterwards, something else stands there than before: a note. */
const CONVERSATION_DAMAGE = [
  lineGone("the call of a result", ["result-without-call"], hasCall),
  lineGone("the result of a call", ["call-without-result"], isResult),
  lineChanged("a call without an input", ["bad-tool-input"], (line) =>
    hasCall(line) ? line.replace(/"arguments":\{[^}]*\}/, '"arguments":null') : null,
  ),
];
const DAMAGES = [...LINE_DAMAGE, ...CONVERSATION_DAMAGE];

const SEED = seedOf(import.meta.url, "unit");

describe("zot", () => {
  test("sessions are found, healthy, understood, and imported", async () => {
    for (const session of sessions()) {
      const { problems, records } = await diagnose(zot, session);
      expect(problems).toEqual([]);
      expect(records).toEqual({ intact: session.lines.length, recovered: 0, partial: 0, unreadable: 0 });
      expect(await fix(zot, session, { backups })).toBe(null);
      using door = new Door();
      const { conversations, title } = await readConversations(zot, session, door);
      expect(title).toBe("Birds");
      expect(conversations[0]!.messages.length).toBeGreaterThan(1);
    }
    expect(sessions().length).toBe(CONVERSATIONS.length);
  });

  for (const [index, damage] of DAMAGES.entries())
    test(damage.kind, async () => {
      let cases = 0;
      const first = SEED + 1_000 * index;
      for (const session of sessions())
        for (let seed = first; seed < first + 3 * Number(process.env["HOLDFAST_EFFORT"] ?? 1); seed++) {
          // Of a call that was interrupted, nothing is missed.
          if (
            CONVERSATION_DAMAGE.includes(damage) &&
            session.lines.filter(hasCall).length > session.lines.filter(isResult).length
          )
            continue;
          if (!(await harmAndRead(zot, session, damage, seed))) continue;
          cases++;
          if (CONVERSATION_DAMAGE.includes(damage)) {
            expect(kindsIn((await fix(zot, session, { backups }))!.diagnosis)).toEqual([]);
            expect(await fix(zot, session, { backups })).toBe(null);
          } else if (!damage.named.includes("empty-file"))
            await harmAndFix(zot, session, damage, seed, backups, { keepsResults: false });
        }
      expect(cases).toBeGreaterThan(0);
    });

  test("odd but legal: facts again, an answer without content, an interrupted call, equal prompts", async () => {
    const [session] = sessions();
    const lines = [
      session!.lines[0]!,
      '{"type":"message","message":{"role":"user","content":[{"text":"go"}],"time":"0001-01-01T00:00:00Z"}}',
      '{"type":"message","message":{"role":"assistant","content":null,"time":"0001-01-01T00:00:00Z"}}',
      '{"type":"message","message":{"role":"assistant","content":[{"id":"a","name":"x","arguments":{}}],"time":"0001-01-01T00:00:00Z"}}',
      '{"type":"message","message":{"role":"user","content":[{"text":"go"}],"time":"0001-01-01T00:00:00Z"}}',
      '{"type":"message","message":{"role":"user","content":[{"text":"go"}],"time":"0001-01-01T00:00:00Z"}}',
      session!.lines[0]!.replace("heron-1", "egret-2"),
      '{"type":"bookmark","at":7}',
    ];
    writeFileSync(session!.path, lines.join("\n"));
    expect(kindsIn(await diagnose(zot, session!))).toEqual([]);
  });
});
