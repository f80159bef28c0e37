import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { gemini } from "../../../src/dialects/gemini.ts";
import { entry } from "./dialect-conversations.ts";

// biome-ignore lint/suspicious/noExplicitAny: contents as an agent has them.
type Content = any;

const user = (...parts: Content[]): Content => ({ role: "user", parts });
const model = (...parts: Content[]): Content => ({ role: "model", parts });
const call = (name: string, id?: string, args: unknown = {}): Content => ({
  functionCall: { ...(id ? { id } : {}), name, args },
});
const response = (name: string, output: unknown = "ok", id?: string): Content => ({
  functionResponse: { ...(id ? { id } : {}), name, response: { output } },
});
const signed = (part: Content, thoughtSignature = "s"): Content => ({ ...part, thoughtSignature });

function shown(contents: Content[], view: Partial<View> = {}, rest: Partial<Entry<Content>>[] = []): Content[] {
  const entries = contents.map((content, at) => entry(content, at, rest[at])) as Entry<Content>[];
  return gemini.arrange(entries, { changedAt: null, next: "model", ...view });
}

describe("gemini: arrange", () => {
  const go = user({ text: "go" });

  test("one turn with as many responses as calls, in their order, and then what the user said", () => {
    const view = shown([
      go,
      model(call("a", "1"), call("b", "2")),
      user(response("b", 2, "2"), { text: "wait" }),
      user(response("a", 1, "1")),
    ]);
    expect(view).toEqual([
      go,
      model(call("a", "1"), call("b", "2")),
      user(response("a", 1, "1"), response("b", 2, "2")),
      user({ text: "wait" }),
    ]);
  });

  test("R9: without ids, by order and name", () => {
    const calls = model(call("read"), call("write"), call("read"));
    expect(gemini.calls(calls).map(({ id }) => id)).toEqual(["read#0", "write#0", "read#1"]);
    const view = shown([go, calls, user(response("read", 1)), user(response("read", 2)), user(response("write", 3))]);
    expect(view[2]).toEqual(user(response("read", 1), response("write", 3), response("read", 2)));
  });

  test("R9: a result that was phrased here finds its own call among others of that name", () => {
    const calls = model(call("read"), call("read"));
    const second = gemini.result(gemini.calls(calls)[1]!, { value: "second" });
    expect(shown([go, calls, second, user(response("read", "first"))])[2]).toEqual(
      user(response("read", "first"), response("read", "second")),
    );
  });

  test("R9: an id on one side only is set right, and so is a name", () => {
    const view = shown([
      go,
      model(call("read", "1")),
      user(response("read")),
      model(call("read")),
      user(response("raed", "ok", "made up"), { text: "x" }),
    ]);
    // Nothing says that the other response is for the other call.
    expect(view.slice(2)).toEqual([user(response("read", "ok", "1")), user({ text: "x" })]);
    expect(shown([go, model(call("read")), user(response("read", "ok", "made up"))])[2]).toEqual(
      user(response("read")),
    );
  });

  test("R9: an id that repeats in one turn is renamed on both sides; in another turn it says nothing wrong", () => {
    const step = [model(call("a", "1"), call("a", "1")), user(response("a", 1, "1"), response("a", 2, "1"))];
    const once = [model(call("a", "1"), call("a", "1_2")), user(response("a", 1, "1"), response("a", 2, "1_2"))];
    expect(shown([go, ...step, ...step])).toEqual([go, ...once, ...once]);
  });

  test("open calls: at the end they stay, else their step is left out", () => {
    const contents = [go, model({ text: "so" }, call("a", "1"), call("b", "2")), user(response("a", 1, "1"))];
    expect(shown(contents)).toEqual(contents);
    expect(shown(contents, { next: "prompt" })).toEqual([go]);
    expect(shown([...contents, user({ text: "?" })])).toEqual([user({ text: "go" }, { text: "?" })]);
  });

  test("neighbours are joined, the first turn is the user's, other names of its role are too", () => {
    const view = shown([
      model({ text: "hello" }),
      model({ text: "there" }),
      { parts: [{ text: "a" }] },
      { role: "function", parts: [{ text: "b" }] },
    ]);
    expect(view).toEqual([
      user({ text: "(The conversation starts here.)" }),
      model({ text: "hello" }, { text: "there" }),
      user({ text: "a" }, { text: "b" }),
    ]);
  });

  test("signatures go back as they came, also on a part without text", () => {
    const contents = [
      go,
      model({ text: "hm", thought: true }, signed(call("a")), call("b")),
      user(response("a"), response("b")),
      model({ text: "x" }, signed({ text: "" })),
    ];
    expect(shown(contents)).toEqual(contents);
  });

  test("R1, R4: signatures that no longer hold give way to the one that says so, on the first call alone", () => {
    const contents = [
      go,
      model({ text: "hm", thought: true }, signed(call("a")), call("b")),
      user(response("a"), response("b")),
      model({ text: "x" }, signed({ text: "" })),
    ];
    const none = "skip_thought_signature_validator";
    expect(shown(contents, { changedAt: "e0" })).toEqual([
      go,
      model(signed(call("a"), none), call("b")),
      contents[2],
      model({ text: "x" }),
    ]);
    const unsigned = [go, model(call("a")), user(response("a"))];
    expect(shown(unsigned, { changedAt: "e0" })).toEqual(unsigned);
    expect(shown(unsigned, { model: "new" }, [{}, { model: "old" }])[1]).toEqual(model(signed(call("a"), none)));
  });

  test("C30: args that are cut off or null, a response that is no object; nothing empty", () => {
    const view = shown([
      go,
      user({ text: "" }),
      user(),
      model({ text: " " }, call("a", "1", '{"x'), call("b", "2", null)),
      user({ functionResponse: { id: "1", name: "a", response: "text" } }, response("b", 2, "2")),
      model({ text: "" }),
    ]);
    expect(view).toEqual([
      go,
      model(call("a", "1", { unparsed: '{"x' }), call("b", "2", {})),
      user(response("a", "text", "1"), response("b", 2, "2")),
    ]);
  });

  test("the provider's own calls (R8)", () => {
    const search = { toolCall: { id: "t", toolType: "GOOGLE_SEARCH", args: {} } };
    const hits = { toolResponse: { id: "t", toolType: "GOOGLE_SEARCH", response: {} } };
    const code = { executableCode: { code: "1", language: "PYTHON" } };
    const ran = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } };
    const contents = [go, model(search, hits, code, ran, { text: "x" }), user({ text: "on" }), model(code, ran)];
    expect(shown(contents)).toEqual(contents);
    expect(gemini.calls(contents[1]).map(({ by }) => by)).toEqual(["provider", "provider"]);
    // It leaves none for the next request to finish, and refuses one that ends with its own turn.
    expect(shown([go, model(search)])).toEqual([go]);
    expect(shown([go, model(search), user({ text: "on" })])).toEqual([user({ text: "go" }, { text: "on" })]);
    expect(shown([go, model(hits, { text: "x" })])).toEqual([go, model({ text: "x" })]);
  });
});

describe("gemini: the rest", () => {
  test("result: output or error, in an object", () => {
    expect(gemini.result({ id: "1", name: "a" }, { value: [1] })).toEqual(user(response("a", [1], "1")));
    expect(gemini.result({ id: "1", name: "a" }, { value: undefined })).toEqual(user(response("a", null, "1")));
    const failed = { functionResponse: { id: "1", name: "a", response: { error: "no" } } };
    expect(gemini.result({ id: "1", name: "a" }, { error: new Error("no") })).toEqual(user(failed));
  });

  test("incomplete, boundary, role, text, check", () => {
    expect(gemini.incomplete("")).toBeNull();
    expect(gemini.incomplete("half")).toEqual(model({ text: "half" }));
    expect(gemini.role(gemini.boundary("x"))).toBe("user");
    expect(gemini.role(user(response("a"), { text: "b" }))).toBe("tool");
    expect(gemini.text(model({ text: "hm", thought: true }, { text: "one " }, { text: "two" }))).toBe("one two");
    expect(gemini.check(user({ text: "b" }))).toBeNull();
    expect(gemini.check(user({ type: "text", text: "b" }))).toMatch(/another dialect/);
    expect(gemini.check({ role: "assistant", parts: [] })).toBe('role is "assistant"');
  });
});
