import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { format } from "../../../../src/agents/copilot/format.ts";
import { copilot } from "../../../../src/agents/copilot/index.ts";
import type { SessionPlace } from "../../../../src/contract/agent.ts";
import { fieldsOf, listIn } from "../../../../src/contract/shapes.ts";
import { readConversations } from "../../../../src/conversation/conversation.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../../src/files/door.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { LOST_ANSWER, LOST_PROMPT } from "../../../../src/mend/words.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";
import {
  describeFix,
  describeLineAgent,
  kindsIn,
  type LineAgentSuite,
  scratchFolder,
  sessionsIn,
} from "../agent-suite.ts";
import { LINE_DAMAGE, lineChanged, lineGone, lineMoved, lineTwice } from "../line-damage.ts";

const dataOf = (line: string) => fieldsOf(fieldsOf(JSON.parse(line))["data"]);
const isResult = (line: string): boolean => fieldsOf(JSON.parse(line))["type"] === "tool.execution_complete";
const callsIn = (line: string): unknown[] =>
  listIn(dataOf(line)["toolRequests"]).map((request) => fieldsOf(request)["toolCallId"]);

const suite: LineAgentSuite = {
  agent: copilot,
  lines: format,
  format: "copilot",
  seed: seedOf(import.meta.url, "unit"),
  damages: [
    ...LINE_DAMAGE,
    // What only events of the model follow is not missed.
    lineGone(
      "a record is gone",
      ["lost-record"],
      (line) => !/"type":"(?:model\.|session\.compaction_start)/.test(line),
    ),
    lineTwice(() => true),
    lineMoved("a result before its call", ["result-before-call"], (lines) =>
      lines.flatMap((line, second) => {
        const first = lines.findIndex((each) => isResult(line) && callsIn(each).includes(dataOf(line)["toolCallId"]));
        return first < 0 ? [] : [[first, second] as const];
      }),
    ),
    lineChanged("a call with null input", ["bad-tool-input"], (line) => {
      if (callsIn(line).length === 0) return null;
      const event = fieldsOf(JSON.parse(line));
      const toolRequests = listIn(dataOf(line)["toolRequests"]).map((each) => ({ ...fieldsOf(each), arguments: null }));
      return JSON.stringify({ ...event, data: { ...dataOf(line), toolRequests } });
    }),
  ],
};
describeLineAgent(suite);
describeFix(suite);

async function foundAfter(
  change: (session: SessionPlace, home: string) => void,
  repair?: (session: SessionPlace, home: string) => Promise<void>,
): Promise<string[]> {
  using scratch = scratchFolder();
  const { home } = placeRecording(listRecordings("copilot").find(({ story }) => story === "work")!, scratch.folder);
  const [session] = sessionsIn(copilot, home);
  change(session!, join(home, ".copilot"));
  await repair?.(session!, home);
  return kindsIn(await diagnose(copilot, session!));
}

describe("Copilot CLI: what stands beside the events", () => {
  const workspace = ({ path }: SessionPlace): string => join(dirname(path), "workspace.yaml");
  const cases: readonly [string, readonly string[], (session: SessionPlace, home: string) => void][] = [
    ["nothing is wrong", [], () => undefined],
    ["workspace.yaml holds zeros", ["nul-run"], (session) => writeFileSync(workspace(session), Buffer.alloc(200))],
    ["workspace.yaml is empty", ["empty-file"], (session) => writeFileSync(workspace(session), "")],
    [
      "workspace.yaml is that of another",
      ["header-damaged"],
      (session) => writeFileSync(workspace(session), "id: x\n"),
    ],
    ["there is none", [], (session) => rmSync(workspace(session))],
    [
      "the store does not list it",
      ["index-missing"],
      (_, home) => {
        const database = new DatabaseSync(join(home, "session-store.db"));
        database.exec("pragma foreign_keys = off; delete from sessions");
        database.close();
      },
    ],
    ["there is no store", [], (_, home) => rmSync(join(home, "session-store.db"))],
    [
      "the store is damaged",
      ["damaged-database"],
      (_, home) => writeFileSync(join(home, "session-store.db"), Buffer.alloc(8_192, 7)),
    ],
  ];
  for (const [name, found, change] of cases) test(name, async () => expect(await foundAfter(change)).toEqual(found));

  for (const [name, found, change] of cases.filter(([, kinds]) => kinds.length > 0 && kinds[0] !== "damaged-database"))
    test(`repaired: ${name}`, async () => {
      const left = await foundAfter(change, async (session, home) => {
        const fixed = await fix(copilot, session, { backups: join(home, "backups") });
        expect(fixed?.diagnosis.problems).toEqual([]);
        expect(await fix(copilot, session, { backups: join(home, "backups") })).toBe(null);
      });
      expect([found.length, left]).toEqual([1, []]);
    });

  test("prompts and answers come back from the store, calls from their starts; the rest has a note", async () => {
    const texts: unknown[] = [];
    const left = await foundAfter(
      ({ path }) => {
        const lines = readFileSync(path, "utf8").split("\n");
        const isLost = (line: string): boolean => /"type":"(?:user|assistant)\.message"/.test(line);
        writeFileSync(path, lines.filter((line) => !isLost(line)).join("\n"));
      },
      async (session, home) => {
        await fix(copilot, session, { backups: join(home, "backups") });
        using door = new Door();
        const { conversations } = await readConversations(copilot, session, door);
        texts.push(...conversations[0]!.messages.flatMap(({ content }): unknown[] => [...content]));
      },
    );
    expect(left).toEqual([]);
    const all = JSON.stringify(texts);
    expect(all).toContain("What is a heron? Ω");
    expect(all).toContain("Two worked, and one failed with status 3.");
    expect(all).toContain("echo batch-a");
    // The store has no row of this exchange; its prompt stands beside the files that it changed.
    expect(all).toContain("Look around in this folder.");
    const notes = texts.filter((block) => [LOST_ANSWER, LOST_PROMPT].includes(String(fieldsOf(block)["text"])));
    expect(notes).toEqual([{ type: "text", text: LOST_ANSWER }]);
  });

  test("a sub-agent has a thread of its own, and the call that started it", async () => {
    using scratch = scratchFolder();
    const { home } = placeRecording(
      listRecordings("copilot").find(({ story }) => story === "subagent")!,
      scratch.folder,
    );
    const [session] = sessionsIn(copilot, home);
    const { units, problems } = await diagnose(copilot, session!);
    expect([problems, units.subagent, units.call, units.result]).toEqual([[], 1, 2, 2]);
  });
});
