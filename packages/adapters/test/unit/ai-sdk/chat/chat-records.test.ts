import { type ModelMessage, type ToolSet, tool } from "ai";
import type { Session, Store, Turn } from "holdfast";
import { describe, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import type { PageAnswer } from "../../../../src/ai-sdk/chat/browser-message.ts";
import { isAwaited, recordAnswer, suspension } from "../../../../src/ai-sdk/chat/record-answer.ts";
import { type Waits, waitsOf } from "../../../../src/ai-sdk/chat/waits.ts";
import { resumeTurn } from "../../../../src/ai-sdk/resume.ts";
import { recordsOf } from "../../../agents.ts";
import { LazyDisk } from "../../../lazy-disk.ts";
import { nothing } from "../../../memory-chat.ts";

/** What an answer of a page, and a resumed turn, leave on a disk where nothing is written at once. */

const tools: ToolSet = {
  send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }),
  where: tool({ inputSchema: nothing }),
  shown: tool({ inputSchema: nothing, toModelOutput: ({ output }) => ({ type: "text", value: `shown ${output}` }) }),
};

const calls = (...names: string[]): ModelMessage => ({
  role: "assistant",
  content: names.flatMap((toolName) => [
    { type: "tool-call" as const, toolCallId: `c ${toolName}`, toolName, input: {} },
    ...(toolName === "send"
      ? [{ type: "tool-approval-request" as const, approvalId: "ask", toolCallId: `c ${toolName}` }]
      : []),
  ]),
});

class Slow implements AsyncDisposable {
  readonly #lazy = new LazyDisk();
  readonly #folder = place();
  #store!: Store;
  session!: Session<ModelMessage>;
  turn!: Turn<ModelMessage>;

  static async begin(...messages: ModelMessage[]): Promise<Slow> {
    const slow = new Slow();
    slow.#store = await slow.#lazy.open(slow.#folder.path);
    slow.session = await slow.#store.create<ModelMessage>({ dialect: "ai-sdk" });
    slow.turn = await slow.session.startTurn({ role: "user", content: "Go." });
    for (const message of messages) await slow.turn.append(message);
    return slow;
  }

  /** As the next process finds it. */
  async reopened(): Promise<Session<ModelMessage>> {
    await this.session.close();
    this.session = await this.#store.resume<ModelMessage>(this.session.id, { dialect: "ai-sdk" });
    return this.session;
  }

  get left(): string {
    return this.#lazy.left;
  }

  async kinds(): Promise<string[]> {
    const seen = (await recordsOf(this.session)).map(({ kind }) => kind);
    return seen.filter((kind) => kind.startsWith("tool."));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store.close();
    this.#folder[Symbol.dispose]();
  }
}

const output = (toolName: string, answer: PageAnswer["answer"]): PageAnswer => ({
  ...{ kind: "output", id: `c ${toolName}`, toolName, answer, content: JSON.stringify(answer) },
});
const approval = (approved: boolean, reason?: string): PageAnswer => ({
  ...{ kind: "approval", id: "ask", toolName: "send", content: String(approved) },
  answer: { approved, ...(reason === undefined ? {} : { reason }) },
});

describe("an answer of a page is on disk when it is taken, once", () => {
  test.each<[string, PageAnswer, journal: RegExp]>([
    ["an output", output("where", { value: "here" }), /"tool\.started".*"tool\.ended".*here/],
    ["a failure", output("where", { error: "no map" }), /"tool\.started".*"tool\.ended".*no map/],
    ["an output that the model is shown otherwise", output("shown", { value: "A" }), /"tool\.ended".*shown A/],
    ["an approval", approval(true), /"tool-approval-response".*"approved":true/],
    ["a denial", approval(false, "Not now."), /"approved":false,"reason":"Not now\."/],
  ])("%s", async (_, answer, journal) => {
    await using slow = await Slow.begin(calls("where", "shown", "send"));
    const waits = waitsOf(slow.session, tools);
    expect(isAwaited(answer, waits)).toBe(true);
    for (let times = 0; times < 2; times++)
      await recordAnswer(slow.session, slow.turn, answer, "key", waits, { tools } as never).catch((error: unknown) => {
        // The second time the call is over.
        if (times === 0) throw error;
      });
    expect(slow.left).toMatch(journal);
    expect(slow.left).not.toMatch(/providerExecuted/);
    const ended = (await slow.kinds()).filter((kind) => kind === "tool.ended");
    expect(ended).toHaveLength(answer.kind === "output" ? 1 : 0);
    const responses = slow.session.entries.filter(({ message }) =>
      JSON.stringify(message).includes("approval-response"),
    );
    expect(responses).toHaveLength(answer.kind === "output" ? 0 : 1);
  });

  test("a call that had started is not started again; a decision about a call of the provider says so", async () => {
    await using slow = await Slow.begin(calls("where", "send"));
    await slow.turn.toolStarted("c where");
    await slow.turn.suspend({ reason: "result" });
    const session = await slow.reopened();
    const waits = waitsOf(session, tools);
    const turn = await session.resumeTurn({ calls: () => "keep" });
    await recordAnswer(session, turn, output("where", { value: "here" }), "k1", waits, { tools } as never);
    expect(await slow.kinds()).toEqual(["tool.started", "tool.ended"]);
    const send = session.calls.find(({ id }) => id === "c send")!;
    const provider: Waits = { approvals: new Map([["ask", { ...send, state: "provider" }]]), outputs: new Map() };
    await recordAnswer(session, turn, approval(true), "k2", provider, { tools } as never);
    expect(slow.left).toMatch(/"providerExecuted":true/);
  });

  test("an answer that names another tool, or nothing that waits, is not awaited", async () => {
    await using slow = await Slow.begin(calls("where", "send"));
    const waits = waitsOf(slow.session, tools);
    expect(isAwaited({ ...output("where", { value: 1 }), toolName: "shown" }, waits)).toBe(false);
    expect(isAwaited(output("shown", { value: 1 }), waits)).toBe(false);
    expect(isAwaited({ ...approval(true), id: "other" }, waits)).toBe(false);
  });

  test("what still waits is named by its approvals; outputs are known by their starts", async () => {
    await using slow = await Slow.begin({ role: "assistant", content: "So." }, calls("where", "send"));
    expect(suspension(waitsOf(slow.session, tools))).toEqual({ reason: "approval", calls: ["c send"] });
    expect(suspension({ approvals: new Map(), outputs: new Map() })).toEqual({ reason: "result" });
  });
});

describe("a turn that is resumed", () => {
  const settings = {} as Parameters<typeof resumeTurn>[1];
  const today = { tools, rules: {} };

  test("and has its answer is ended, on disk", async () => {
    await using slow = await Slow.begin({ role: "assistant", content: "Done." });
    const session = await slow.reopened();
    expect(await resumeTurn(session, settings, today)).toBe(null);
    expect(slow.left).toMatch(/turn\.ended.*"completed"/);
  });

  test("and waits stays as it is; with answers it goes on, and they are on disk", async () => {
    await using slow = await Slow.begin(calls("send"));
    const session = await slow.reopened();
    expect(await resumeTurn(session, settings, today)).toBe(null);
    for (const [approvals, why] of [
      [[], /"ask" is missing/],
      [[{ approvalId: "other", approved: true }], /no open request "other"/],
      [[1, 2].map(() => ({ approvalId: "ask", approved: true })), /two answers/],
    ] as const)
      await expect(resumeTurn(session, { approvals }, today)).rejects.toThrow(why);
    expect(slow.left).not.toMatch(/turn\.resumed/);
    const turn = await resumeTurn(
      session,
      { approvals: [{ approvalId: "ask", approved: false, reason: "No." }] },
      today,
    );
    expect(turn).toBe(session.turn);
    expect(slow.left).toMatch(/turn\.resumed.*"tool-approval-response".*"reason":"No\."/);
  });

  test.each(["where", "send"])("with an open call of %s waits", async (name) => {
    await using slow = await Slow.begin(calls(name));
    const session = await slow.reopened();
    expect(await resumeTurn(session, settings, today)).toBe(null);
    expect(await resumeTurn(session, { calls: () => "close" }, today)).not.toBe(null);
  });

  test("after its process was killed in a client-side tool: what was started is told as cut off; if it was suspended, it waits", async () => {
    for (const isSuspended of [false, true]) {
      await using slow = await Slow.begin(calls("where"));
      await slow.turn.toolStarted("c where");
      if (isSuspended) await slow.turn.suspend({ reason: "result" });
      const session = await slow.reopened();
      expect((await resumeTurn(session, settings, today)) === null).toBe(isSuspended);
    }
  });
});
