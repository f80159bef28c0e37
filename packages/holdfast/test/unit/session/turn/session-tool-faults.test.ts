import { type AnthropicMessage, type ErrorCode, errorCodes, errorKind, HoldfastError, openStore } from "holdfast";
import { describe, expect, test } from "vitest";

/** What Holdfast itself throws inside a tool. */

type M = AnthropicMessage;

const user = (text: string): M => ({ role: "user", content: text });
const calls = (...ids: string[]): M => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: { id } })) as never,
});

async function begin() {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a", "b", "c"));
  return { session, turn, [Symbol.asyncDispose]: () => store.close() };
}

const error = (code: ErrorCode): HoldfastError => new HoldfastError(code, `told: ${code}`, {});
const fatal = errorCodes.filter((code) => errorKind(error(code)) !== "refusal");

test.each(fatal)(
  "%s: turn.tool rejects with it, the signal fires, and what has not started does not start",
  async (code) => {
    await using here = await begin();
    const { session, turn } = here;
    const fault = error(code);
    const running = Promise.withResolvers<void>();
    const beside = turn.tool("b", (signal) => {
      running.resolve();
      return new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("stopped")));
    });
    await running.promise;
    await expect(turn.tool("a", () => Promise.reject(fault))).rejects.toBe(fault);
    expect(turn.signal.reason).toBe(fault);
    expect(await beside, "what runs beside it comes to its own end").toEqual({ value: "stopped" });
    const ran: string[] = [];
    expect(await turn.tool("c", () => ran.push("c"))).toEqual({ error: fault });
    expect(ran).toEqual([]);
    await turn.fail(fault);
    const states = session.interruption!.calls.map(({ id, state }) => `${id} ${state}`);
    // A store that failed leaves in doubt how far the tool came; what is the program's own fault does not.
    const expected = errorKind(fault) === "store" ? ["a outcome-unknown", "c never-started"] : ["c never-started"];
    expect(states).toEqual(expected);
    if (errorKind(fault) === "misuse") expect(JSON.stringify(session.messages)).toContain(`told: ${code}`);
  },
);

test.each(["SESSION_NOT_FOUND", "SESSION_BUSY", "QUERY_INVALID", "RECORD_TOO_LARGE"] as const)(
  "%s is the tool's outcome: the model may act on it",
  async (code) => {
    await using here = await begin();
    const { turn } = here;
    const refusal = error(code);
    expect(await turn.tool("a", () => Promise.reject(refusal))).toEqual({ error: refusal });
    expect(turn.signal.aborted).toBe(false);
    expect(await turn.tool("b", () => "ran")).toEqual({ value: "ran" });
  },
);

describe("real ones", () => {
  test("a call that nobody made, and a process of one that does not run", async () => {
    await using here = await begin();
    const { turn } = here;
    await expect(turn.tool("a", () => turn.tool("nobody", () => "ran"))).rejects.toMatchObject({
      code: "CALL_UNKNOWN",
    });
    await using other = await begin();
    const process = { pid: 1, started: "now" };
    await expect(other.turn.tool("a", () => other.turn.toolProcess("b", process))).rejects.toMatchObject({
      code: "CALL_UNKNOWN",
    });
    expect(other.turn.signal.aborted).toBe(true);
  });

  test("a session of its own that is closed", async () => {
    await using here = await begin();
    await using inner = await begin();
    await inner.session.close();
    await expect(here.turn.tool("a", () => inner.turn.append(user("x")))).rejects.toMatchObject({
      code: "SESSION_CLOSED",
    });
  });

  test("what a tool runs into because its turn was stopped is its outcome", async () => {
    await using here = await begin();
    const { session, turn } = here;
    const outcome = await turn.tool("a", async () => {
      await turn.abort({ by: "user" });
      await turn.append(user("too late"));
    });
    expect(outcome.error).toMatchObject({ code: "TURN_ENDED" });
    expect(session.interruption).toMatchObject({ how: { kind: "aborted", by: "user" } });
    expect(session.interruption!.calls.map(({ id }) => id)).toEqual(["b", "c"]);
  });
});
