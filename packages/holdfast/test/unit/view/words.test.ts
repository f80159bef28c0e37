import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import type { How } from "../../../src/view/interruption.ts";
import { because, boundaryWords, goOnWords, reasonWords, resultWords } from "../../../src/view/model-words.ts";

const LONG = `long ${"😀".repeat(100_000)}`;
const HOWS: How[] = [
  { kind: "killed" },
  { kind: "signal", signal: `SIG${LONG}` },
  { kind: "signal", signal: LONG },
  { kind: "aborted", by: LONG, reason: LONG },
  { kind: "failed", error: LONG },
  { kind: "suspended", reason: LONG },
  { kind: "completed" },
];

describe("what is put into words for the model is bounded, cut between characters, and says that it was cut", () => {
  test.each(HOWS.map((how) => [how.kind, how] as const))("%s", (_, how) => {
    const words = [
      because(how),
      ...(["never-started", "unrecorded", "awaiting", "outcome-unknown", "provider"] as const).map((state) =>
        resultWords(state, how),
      ),
    ];
    for (const text of words) {
      expect(text.length).toBeLessThan(600);
      expect(text.isWellFormed()).toBe(true);
      expect(text).not.toMatch(/[\n\r]/);
    }
    if (how.kind !== "killed" && how.kind !== "completed") expect(because(how)).toContain("…");
  });

  test("names of tools: each of them, and how many", () => {
    const tools = {
      started: Array.from({ length: 5000 }, () => LONG),
      ended: [LONG, "", "read\n[SYSTEM]"],
      failed: [LONG],
    };
    for (const text of [boundaryWords(HOWS[3]!, tools, true), goOnWords(HOWS[3]!, tools, true)]) {
      expect(text.length).toBeLessThan(4000);
      expect(text.isWellFormed()).toBe(true);
      expect(text).toContain(", and 4980 more.");
      expect(text).toContain("…, a tool without a name, read [SYSTEM].");
    }
  });

  test("what is short stays as it is", () => {
    expect(because({ kind: "aborted", by: "Ann", reason: "wrong file" })).toBe("Ann stopped it (wrong file)");
    expect(because({ kind: "aborted", by: "" })).toBe("the application stopped it");
    expect(reasonWords("no")).toBe("no");
    const tools = { started: ["read", "write"], ended: [], failed: [] };
    expect(boundaryWords({ kind: "killed" }, tools, false)).toBe(
      "[The turn before this was interrupted: the process died. It was not completed. Started, with an unknown outcome: read, write. Check before repeating.]",
    );
  });
});

// biome-ignore lint/suspicious/noExplicitAny: messages as an agent has them.
type M = any;

async function stopped(stop: (session: Session<M>) => Promise<void>): Promise<{ sent: number; kept: number }> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "go" });
  const content = Array.from({ length: 10 }, (_, n) => ({ type: "tool_use", id: `t${n}`, name: "work", input: {} }));
  await turn.append({ role: "assistant", content });
  await stop(session);
  const before = JSON.stringify(session.messages).length;
  await session.startTurn({ role: "user", content: "and now?" });
  const sent = Math.max(before, JSON.stringify(session.messages).length);
  const kept = JSON.stringify(await Array.fromAsync(store.history(session.id))).length;
  await store.close();
  return { sent, kept };
}

describe("ten open calls, and somebody with a name of 200 kB", () => {
  test.each<[string, (session: Session<M>) => Promise<void>]>([
    ["stops the turn", (session) => session.turn!.abort({ by: LONG, reason: LONG })],
    ["lets it fail", (session) => session.turn!.fail(new Error(LONG))],
    ["lets it wait", (session) => session.turn!.suspend({ reason: LONG })],
    [
      "stops it while tools begin",
      async (session) => {
        const turn = session.turn!;
        const started = Array.from({ length: 10 }, (_, n) => turn.tool(`t${n}`, () => "done"));
        const ended = turn.abort({ by: LONG, reason: LONG });
        await Promise.all([...started, ended]);
      },
    ],
  ])("%s: the request stays small, and the journal has all of it", async (_, stop) => {
    const { sent, kept } = await stopped(stop);
    expect(sent).toBeLessThan(12_000);
    expect(kept).toBeGreaterThan(200_000);
    expect(kept).toBeLessThan(450_000);
  });
});
