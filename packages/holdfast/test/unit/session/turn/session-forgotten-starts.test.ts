import { type OpenAIChatMessage, openStore } from "holdfast";
import { expect, test } from "vitest";

type M = OpenAIChatMessage;

const user = (content: string): M => ({ role: "user", content });
const work = (id: string) => ({ id, type: "function", function: { name: "work", arguments: "{}" } });

test("P3, R5: a call of an earlier turn that has lost its result is not said never to have started", async () => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "openai-chat" });
  const first = await session.startTurn(user("work"));
  const { id } = await first.append({ role: "assistant", content: null, tool_calls: [work("a"), work("b")] } as M);
  await first.toolStarted("a");
  await first.toolStarted("b");
  await first.abort({ by: "user" });
  const second = await session.startTurn(user("hide it"));
  // Hides the step with it, from the next turn on.
  await session.patch(`${id}~1`, { hiddenFromModel: true });
  await second.end();
  await (await session.startTurn(user("go on"))).end();
  // In the middle of what is hidden: what was hidden by the result that is dropped is shown again.
  const end = session.entries.findIndex((entry) => entry.id === `${id}~0`) + 1;
  await session.replace(session.entries.slice(0, end), { reason: "rewind" }).catch((error) => {
    expect(error).toMatchObject({ code: "STEP_SPLIT" });
  });
  await session.startTurn(user("and now?"));
  expect(JSON.stringify(session.messages)).not.toMatch(/never started/);
});

test.each([
  [true, "never-started"],
  [false, "unrecorded"],
])(
  "R5: only the promise counts, not that one tool was started here: recordsToolStarts %s, %s",
  async (given, state) => {
    await using store = await openStore("memory:", { recordsToolStarts: given });
    const session = await store.create<M>({ dialect: "openai-chat" });
    const turn = await session.startTurn(user("work"));
    await turn.append({ role: "assistant", content: null, tool_calls: [work("a"), work("b")] } as M);
    await turn.tool("a", () => "done");
    await turn.abort({ by: "user" });
    expect(session.interruption?.calls).toMatchObject([{ id: "b", state }]);
    await session.close();
    expect((await store.read<M>(session.id)).interruption?.calls).toMatchObject([{ id: "b", state }]);
  },
);
