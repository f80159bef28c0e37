import { openStore, type Session, type Store } from "holdfast";
import { afterEach, describe, expect, test, vi } from "vitest";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";
import { stepsIn } from "../../../src/view/unsent.ts";

// biome-ignore lint/suspicious/noExplicitAny: items as the API gives them.
type Item = any;

const user = { role: "user", content: "go" };
const sealed = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" };
const { encrypted_content: _, ...unsealed } = sealed;
const said = { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "so" }] };
const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "read", arguments: "{}" };
const output = { type: "function_call_output", call_id: "call_1", output: "done" };
const thinking = {
  role: "assistant",
  content: [
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "so" },
  ],
};

const stores: Store[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of stores.splice(0)) await store.close();
});

async function begun(dialect: "openai-responses" | "anthropic" = "openai-responses"): Promise<Session<Item>> {
  const store = await openStore("memory:");
  stores.push(store);
  return store.create<Item>({ dialect });
}

describe("what is recorded and will not be sent is said, and why", () => {
  test("reasoning without its encrypted content: in `warnings`, here and for whoever reads; and once on stderr", async () => {
    const emitted = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const session = await begun();
    expect(session.warnings).toEqual([]);
    const turn = await session.startTurn(user);
    await turn.append([unsealed, said]);
    await turn.append([
      { ...unsealed, id: "rs_2" },
      { ...said, id: "msg_2" },
    ]);
    expect(session.warnings).toEqual([expect.stringContaining('include: ["reasoning.encrypted_content"]')]);
    expect((await stores[0]!.read(session.id)).warnings).toEqual(session.warnings);
    const other = await begun();
    const another = await other.startTurn(user);
    await another.append([unsealed, said]);
    expect(other.warnings).toEqual(session.warnings);
    expect(emitted.mock.calls.map(([text, options]) => [text, (options as Item).code])).toEqual([
      [session.warnings[0], "HOLDFAST_UNSENT"],
    ]);
  });

  test("items of a response that are appended one by one, and a response that ended in its reasoning", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const session = await begun();
    const turn = await session.startTurn(user);
    await turn.append(sealed);
    await turn.append(said);
    expect(session.warnings).toEqual([expect.stringContaining("Append all items of a response together")]);
    expect(JSON.stringify(session.messages)).not.toContain("sealed");
  });

  test("a thinking block without its signature", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const session = await begun("anthropic");
    const turn = await session.startTurn(user);
    await turn.append(thinking);
    expect(session.warnings).toEqual([expect.stringContaining("without its signature")]);
  });

  test("nothing is said of what is sent", async () => {
    const emitted = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const session = await begun();
    const turn = await session.startTurn(user);
    const { draft } = turn.request();
    await draft.commit([sealed, said, call]);
    await turn.append(output);
    expect(session.warnings).toEqual([]);
    expect(emitted).not.toHaveBeenCalled();
    expect(session.messages).toEqual([user, sealed, said, call, output]);
  });
});

describe("a conversation that the application gives as it would send it keeps its reasoning", () => {
  const items: Item[] = [user, sealed, said, call, output, { ...sealed, id: "rs_2" }, { ...said, id: "msg_2" }];

  test("imported", async () => {
    const session = await begun();
    await session.replace([...items, user], { reason: "import" });
    expect(session.messages).toEqual([...items, user]);
    expect(session.warnings).toEqual([]);
  });

  test("as an array, that another process reads and adds to", async () => {
    const session = await begun();
    await session.sync(items);
    expect(session.messages).toEqual(items);
    const { id } = session;
    await session.close();
    const again = await stores[0]!.resume<Item>(id);
    const more = structuredClone([...again.messages, user]);
    expect(await again.sync(more, { rewrite: "error" })).toMatchObject({ epoch: false });
  });

  test("steps: what is not sent by itself, and the assistant's items behind it", () => {
    expect(stepsIn(items, openaiResponses, String)).toEqual(["0", "1", "1", "1", "4", "5", "5"]);
    expect(stepsIn<Item>([user, said, call], openaiResponses, String)).toEqual(["0", "1", "2"]);
  });
});
