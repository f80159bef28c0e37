import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dialects } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENTS, Door, readConversations, sessionsHere } from "../../../src/index.ts";
import { listRecordings, placeRecording, ROOT } from "../../real/recording.ts";

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-conversation-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("the conversation of Claude Code, as Holdfast resumes it", () => {
  for (const recording of listRecordings("claude-code")) {
    test(`${recording.version}, ${recording.story}: what the program shows its model, in its order`, async () => {
      const root = join(scratch, `${recording.version}-${recording.story}`);
      const { home } = placeRecording(recording, root);
      using door = new Door();
      for (const { agent, session } of sessionsHere(AGENTS, { environment: {}, home }, door)) {
        const { conversations } = await readConversations(agent, session, door);
        const [main] = conversations;
        const blocks = main!.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
        const given = recording.sessions.find(({ id }) => id === session.id)!.units;
        const wanted = JSON.parse(JSON.stringify(given).replaceAll(ROOT, root)) as typeof given;
        const ids = (kind: string): (string | undefined)[] =>
          wanted.filter((unit) => unit.kind === kind).map(({ call }) => call);
        expect(blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id)).toEqual(ids("call"));
        expect(
          blocks
            .filter(({ type }) => type === "tool_result")
            .map((block) => block["tool_use_id"])
            .toSorted(),
        ).toEqual(
          // The program adds results for calls that it closes itself.
          ids("result")
            .filter((id) => blocks.some((block) => block["tool_use_id"] === id))
            .toSorted(),
        );
        const said = wanted.filter(({ kind }) => kind === "assistant").map(({ text }) => text);
        const texts = main!.messages
          .filter(({ role }) => role === "assistant")
          .flatMap(({ content }) =>
            typeof content === "string"
              ? content
              : content.flatMap((block) => (block.type === "text" ? String(block["text"]) : [])),
          );
        // What the program says in the place of an answer that never came.
        for (const text of said.filter((words) => words !== "No response requested."))
          expect(texts.join("\n")).toContain(text);
        for (const message of main!.messages) expect(() => dialects.anthropic.check(message as never)).not.toThrow();
        const asides = conversations.slice(1);
        expect(asides.length).toBe(recording.story === "subagent" ? 1 : 0);
        for (const { call, messages } of asides) {
          expect(blocks.some(({ id }) => id === call)).toBe(true);
          expect(messages.length).toBeGreaterThan(1);
        }
      }
    });
  }
});

describe("a session of Claude Code that is still being written", () => {
  for (const recording of listRecordings("claude-code").filter(({ story }) => story === "work"))
    test(`${recording.version}: what is added to the file is added to the conversation`, async () => {
      const { home } = placeRecording(recording, join(scratch, `growing-${recording.version}`));
      using door = new Door();
      const [{ agent, session } = { agent: null, session: null }] = sessionsHere(
        AGENTS,
        { environment: {}, home },
        door,
      );
      const lines = readFileSync(session!.path, "utf8").split("\n");
      let before: unknown[] = [];
      for (let count = 1; count <= lines.length; count++) {
        writeFileSync(session!.path, `${lines.slice(0, count).join("\n")}\n`);
        const { conversations } = await readConversations(agent!, session!, door);
        const blocks = conversations[0]!.messages.flatMap<unknown>(({ content }) => content);
        expect(blocks.slice(0, before.length)).toEqual(before);
        before = blocks;
      }
      expect(before.length).toBeGreaterThan(20);
    });
});

describe("the conversations of agents that keep a database or number their lines", () => {
  for (const recording of ["opencode", "dsh"].flatMap((format) => listRecordings(format)))
    test(`${recording.format}, ${recording.story}: all that was said, in messages that Holdfast takes`, async () => {
      const { home, sessions } = placeRecording(recording, join(scratch, `${recording.format}-${recording.story}`));
      using door = new Door();
      const found = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
      expect(found.map(({ session }) => session.id).toSorted()).toEqual(sessions.map(({ id }) => id).toSorted());
      for (const { agent, session } of found) {
        const [main] = (await readConversations(agent, session, door)).conversations;
        for (const message of main!.messages) expect(() => dialects.anthropic.check(message as never)).not.toThrow();
        const shown = JSON.stringify(main!.messages);
        const { units } = sessions.find(({ id }) => id === session.id)!;
        const summary = units.findLastIndex(({ text }) => text.startsWith("Summary: "));
        for (const { kind, text } of units.slice(Math.max(0, summary)))
          if (kind === "user" || kind === "assistant") expect(shown).toContain(JSON.stringify(text).slice(1, -1));
      }
    });
});
