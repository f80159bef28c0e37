import { validateOpenaiResponses } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";
import { entry } from "./dialect-conversations.ts";

// biome-ignore lint/suspicious/noExplicitAny: items as an agent has them.
type Item = any;

const user = (content: string): Item => ({ role: "user", content });
const reasoning = (n: number): Item => ({ type: "reasoning", id: `rs_${n}`, summary: [], encrypted_content: "e" });
const said = (n: number, text = "ok"): Item => ({
  type: "message",
  id: `msg_${n}`,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});
const call = (id: string, name = "read"): Item => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: "{}",
});
const output = (id: string, text = "ok"): Item => ({ type: "function_call_output", call_id: id, output: text });
const loose = ({ id: _, ...item }: Item): Item => item;

/** Steps are lists of items. */
function shown(steps: (Item | Item[])[], view: Partial<View> = {}, models: string[] = []): Item[] {
  const entries: Entry<Item>[] = [];
  for (const [number, step] of steps.entries()) {
    const model = models[number] === undefined ? {} : { model: models[number] };
    for (const item of [step].flat())
      entries.push(entry(item, entries.length, { step: `s${number}`, ...model }) as Entry<Item>);
  }
  return openaiResponses.arrange(entries, { changedAt: null, next: "model", ...view });
}

describe("openai-responses: arrange", () => {
  test("a conversation that is in order is handed on, item by item", () => {
    const items = [
      user("go"),
      reasoning(1),
      said(1),
      call("a"),
      call("b"),
      output("a"),
      output("b"),
      reasoning(2),
      said(2),
    ];
    const [prompt, , , , , a, b] = items;
    const view = shown([prompt, items.slice(1, 5), a, b, items.slice(7)]);
    expect(view).toHaveLength(9);
    expect(view.every((item, at) => item === items[at])).toBe(true);
  });

  test("an item id is sent once: an item that stands there twice goes without its id, or not at all if it needs one", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } };
    const prompt = { type: "message", id: "msg_9", role: "user", content: "go" };
    const sealed = { ...output("a"), id: "fco_1" };
    const items = [prompt, reasoning(1), search, call("a"), sealed, said(1), prompt];
    const view = shown([items[0], items.slice(1, 4), items[4], items[5], items[6], items.slice(1, 4), items[4]]);
    const again = [loose(prompt), { ...loose(call("a")), call_id: "a_2" }, { ...loose(sealed), call_id: "a_2" }];
    expect(view).toEqual([...items.slice(0, 6), ...again]);
    expect(validateOpenaiResponses(view)).toEqual([]);
  });

  test("reasoning at the end of a response does not lead to an item of the next one (R4)", () => {
    const view = shown([user("go"), [said(1), reasoning(1)], call("a"), output("a"), said(2)]);
    expect(view).toEqual([user("go"), said(1), call("a"), output("a"), said(2)]);
  });

  test("reasoning whose follower is a repeated item is left out: the id that it must be followed by is taken", () => {
    const view = shown([user("go"), said(1), user("on"), [reasoning(1), said(1), said(2)]]);
    expect(view).toEqual([user("go"), said(1), user("on"), loose(said(1)), loose(said(2))]);
  });

  test("an item that is sent without its id leaves the id to a later one", () => {
    const bare = { type: "reasoning", id: "rs_1", summary: [] };
    const view = shown([user("go"), [bare, said(1)], user("on"), [reasoning(1), said(1)], user("on")]);
    expect(view).toEqual([user("go"), loose(said(1)), user("on"), reasoning(1), said(1), user("on")]);
  });

  test("two item ids that differ only in halves of characters are one id", () => {
    const [one, two] = ["\ud800", "\ud801"].map((half) => ({ ...said(1), id: `msg_${half}` }));
    expect(shown([user("go"), one, user("on"), two])).toEqual([user("go"), one, user("on"), loose(two)]);
  });

  test("outputs stand behind all items of the response, in call order, and steering text behind them", () => {
    const view = shown([
      user("go"),
      [reasoning(1), call("a"), call("b")],
      user("wait"),
      output("b"),
      output("a"),
      output("a", "again"),
      output("x"),
    ]);
    expect(view).toEqual([user("go"), reasoning(1), call("a"), call("b"), output("a"), output("b"), user("wait")]);
  });

  test("C34: a step with an open call is left out as a whole, with its results", () => {
    const steps = [user("go"), [reasoning(1), said(1), call("a"), call("b")], output("a")];
    expect(shown(steps)).toEqual(steps.flat());
    expect(shown(steps, { next: "prompt" })).toEqual([user("go")]);
    expect(shown([...steps, [reasoning(2), said(2)]])).toEqual([user("go"), reasoning(2), said(2)]);
  });

  test("a call whose output cannot be phrased: its step is left out (R8)", () => {
    const computer = { type: "computer_call", id: "cu_1", call_id: "a", action: { type: "screenshot" } };
    const [found] = openaiResponses.calls(computer);
    expect(openaiResponses.result(found!, { error: "gone" })).toBeNull();
    expect(shown([user("go"), [reasoning(1), computer], user("so?")])).toEqual([user("go"), user("so?")]);
    const screenshot = {
      type: "computer_call_output",
      call_id: "a",
      output: { type: "computer_screenshot", image_url: "data:" },
    };
    expect(shown([user("go"), [reasoning(1), computer], screenshot])).toEqual([
      user("go"),
      reasoning(1),
      computer,
      screenshot,
    ]);
  });

  test("reasoning goes with the item that it led to, or not at all", () => {
    expect(shown([user("go"), reasoning(1), user("on")])).toEqual([user("go"), user("on")]);
    expect(shown([user("go"), [reasoning(1)], [reasoning(2), said(2)]])).toEqual([user("go"), reasoning(2), said(2)]);
    expect(shown([user("go"), [reasoning(1), said(1, " ")], user("on")])).toEqual([user("go"), user("on")]);
    // One by one, as an agent appends them that does not know of steps: nobody can say what the reasoning led to.
    expect(shown([user("go"), reasoning(1), said(1), call("a"), output("a")])).toEqual([
      user("go"),
      loose(said(1)),
      loose(call("a")),
      output("a"),
    ]);
  });

  test("two responses in a row: each with its outputs behind it, and open calls only in the last", () => {
    const steps = [user("go"), [reasoning(1), call("a")], [reasoning(2), call("b")]];
    expect(shown([...steps, output("b"), output("a")])).toEqual([
      user("go"),
      reasoning(1),
      call("a"),
      output("a"),
      reasoning(2),
      call("b"),
      output("b"),
    ]);
    expect(shown([...steps, output("a")])).toHaveLength(6);
    expect(shown([...steps, output("b")])).toEqual([user("go"), reasoning(2), call("b"), output("b")]);
  });

  test("R3: a place in the middle of a step is the place of the step", () => {
    const view = shown([user("go"), [reasoning(1), said(1), call("a")], output("a")], { changedAt: "e2" });
    expect(view).toEqual([user("go"), loose(said(1)), loose(call("a")), output("a")]);
  });

  test("R1, R4: without its reasoning, an item goes without the id that refers to it", () => {
    const steps = [user("go"), [reasoning(1), said(1), call("a")], output("a"), [reasoning(2), said(2)]];
    expect(shown(steps, { changedAt: "e5" })).toEqual([
      user("go"),
      reasoning(1),
      said(1),
      call("a"),
      output("a"),
      loose(said(2)),
    ]);
    const view = shown(steps, { model: "new" }, ["new", "old", "new", "new"]);
    expect(view).toEqual([user("go"), loose(said(1)), loose(call("a")), output("a"), reasoning(2), said(2)]);
  });

  test("R4, C30: reasoning without its encrypted content, and references, are for a server that may have forgotten", () => {
    const { encrypted_content: _, ...bare } = reasoning(1);
    const steps = [user("go"), [bare, said(1)], { type: "item_reference", id: "msg_0" }, user("on")];
    expect(shown(steps)).toEqual([user("go"), loose(said(1)), user("on")]);
  });

  test("the provider's own calls: never answered, left out while unfinished, and with their reasoning (R8)", () => {
    const search = (status: string): Item => ({
      type: "web_search_call",
      id: "ws_1",
      status,
      action: { type: "search" },
    });
    const steps = [user("go"), [reasoning(1), search("completed"), said(1)]];
    expect(shown(steps)).toEqual(steps.flat());
    expect(shown(steps, { changedAt: "e0" })).toEqual([user("go"), loose(said(1))]);
    const unfinished = [user("go"), [reasoning(1), search("in_progress")]];
    expect(shown(unfinished)).toEqual(unfinished.flat());
    expect(shown([...unfinished, user("well?")])).toEqual([user("go"), user("well?")]);
  });

  test("an approval: awaited, answered by the user's item, and left out without one when the conversation goes on", () => {
    const request = { type: "mcp_approval_request", id: "mcpr_1", name: "roll", arguments: "{}", server_label: "dice" };
    const response = { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true };
    expect(openaiResponses.calls(request)).toEqual([
      { id: "mcpr_1", name: "roll", input: {}, by: "provider", awaiting: true },
    ]);
    expect(shown([user("go"), request])).toEqual([user("go"), request]);
    expect(shown([user("go"), request, response])).toEqual([user("go"), request, response]);
    expect(shown([user("go"), request, user("no, wait")])).toEqual([user("go"), user("no, wait")]);
    expect(shown([user("go"), response])).toEqual([user("go")]);
  });

  test("R1, R3: a change that reaches into a step reaches to its end, and no further", () => {
    const steps = [user("go"), [reasoning(1), said(1), call("a")], output("a"), [reasoning(2), said(2)]];
    const after = [output("a"), reasoning(2), said(2)];
    for (const changedUntil of ["e1", "e2", "e3", "e4"]) {
      const view = shown(steps, { changedAt: "e0", changedUntil });
      expect(view).toEqual([user("go"), loose(said(1)), loose(call("a")), ...after]);
    }
    const whole = shown(steps, { changedAt: "e0", changedUntil: "e5" });
    expect(whole).toEqual([user("go"), loose(said(1)), loose(call("a")), output("a"), loose(said(2))]);
  });

  test("each kind of call gets the kind of output that it wants", () => {
    const calls: Item[] = [
      { type: "custom_tool_call", call_id: "a", name: "grep", input: "x" },
      { type: "shell_call", call_id: "b", action: { commands: ["ls"] } },
      { type: "apply_patch_call", call_id: "c", operation: { type: "delete_file", path: "x" }, status: "completed" },
      { type: "local_shell_call", id: "d", call_id: "d", action: { type: "exec", command: ["ls"], env: {} } },
    ];
    const results = calls.map((item) => {
      // What a session knows of a call that it closes may be no more than this.
      const { id, name } = openaiResponses.calls(item)[0]!;
      return openaiResponses.result({ id, name }, { error: "gone" })!;
    });
    const shell = { stdout: "", stderr: "Error: gone", outcome: { type: "exit", exit_code: 1 } };
    expect(shown([user("go"), calls, ...results]).slice(5)).toEqual([
      { type: "custom_tool_call_output", call_id: "a", output: "Error: gone" },
      { type: "shell_call_output", call_id: "b", output: [shell] },
      { type: "apply_patch_call_output", call_id: "c", status: "failed", output: "Error: gone" },
      { type: "local_shell_call_output", call_id: "d", output: "Error: gone" },
    ]);
  });

  test("R9: repeated and missing call ids; C30: arguments that were cut off", () => {
    const cut = { ...call("a"), arguments: '{"pa' };
    const view = shown([
      user("go"),
      cut,
      output("a", "1"),
      call("a"),
      output("a", "2"),
      loose({ ...call(""), call_id: undefined }),
      output("", "3"),
    ]);
    expect(view.slice(1).map((item) => [item.call_id, item.output ?? item.arguments])).toEqual([
      ["a", JSON.stringify({ unparsed: '{"pa' })],
      ["a", "1"],
      ["a_2", "{}"],
      ["a_2", "2"],
      ["call_3_0", "{}"],
      ["call_3_0", "3"],
    ]);
  });
});

describe("openai-responses: the rest", () => {
  test("result, incomplete, boundary", () => {
    expect(openaiResponses.result({ id: "a", name: "x" }, { value: { n: 1 } })).toEqual(output("a", '{"n":1}'));
    expect(openaiResponses.result({ id: "a", name: "x" }, { error: new Error("no") })).toEqual(
      output("a", "Error: no"),
    );
    expect(openaiResponses.incomplete("")).toBeNull();
    expect(openaiResponses.incomplete("half")).toEqual({ type: "message", role: "assistant", content: "half" });
    expect(openaiResponses.role(openaiResponses.boundary("stopped"))).toBe("user");
  });

  test("role, text, check, same", () => {
    expect(openaiResponses.role(reasoning(1))).toBe("assistant");
    expect(openaiResponses.role(output("a"))).toBe("tool");
    expect(openaiResponses.text(said(1, "hello"))).toBe("hello");
    expect(openaiResponses.text(reasoning(1))).toBe("");
    expect(openaiResponses.check(call("a"))).toBeNull();
    expect(openaiResponses.check({ role: "tool", tool_call_id: "x" } as Item)).toBe('role is "tool"');
    expect(openaiResponses.check({} as Item)).not.toBeNull();
    expect(openaiResponses.same(said(1), said(1))).toBe(true);
    expect(openaiResponses.same(said(1), said(2))).toBe(false);
  });

  test("check: what another SDK made is refused, not read as the assistant's", () => {
    const refused: [item: unknown, why: RegExp][] = [
      [{ type: "function_call", name: "look", arguments: "{}" }, /call_id is missing/],
      [{ type: "function_call", callId: "a", name: "look", arguments: "{}" }, /callId belongs to another SDK/],
      [{ type: "function_call", call_id: "a", arguments: "{}" }, /name is missing/],
      [{ type: "function_call_result", callId: "a", output: "x" }, /another SDK/],
      [{ type: "computer_call_result", callId: "a" }, /another SDK/],
      [{ type: "function_call_output", output: "x" }, /call_id is missing/],
      [{ type: "mcp_approval_response", approve: true }, /approval_request_id/],
      [{ type: "human", content: "hello" }, /another SDK/],
      [{ lc: 1, type: "constructor", id: ["langchain_core"], kwargs: {} }, /another SDK/],
    ];
    for (const [item, why] of refused) expect(openaiResponses.check(item as Item)).toMatch(why);
    const taken = [
      { type: "local_shell_call_output", id: "a", output: "x" },
      { type: "tool_search_call", id: "a", call_id: null, execution: "server", arguments: {} },
      { type: "some_new_call", id: "a" },
    ];
    for (const item of taken) expect(openaiResponses.check(item as Item)).toBeNull();
  });

  test("same: null is as good as nothing, and so are lists that a response has though they are empty", () => {
    const part = { type: "output_text", text: "hi" };
    const bare = { type: "message", role: "assistant", content: [part] } as Item;
    const full = {
      ...bare,
      id: null,
      status: null,
      content: [{ ...part, annotations: [], logprobs: [], parsed: null }],
    };
    expect(openaiResponses.same(bare, full as Item)).toBe(true);
    expect(openaiResponses.same(bare, { ...full, id: "msg_1" } as Item)).toBe(false);
    const cited = { ...bare, content: [{ ...part, annotations: [{ type: "url_citation" }] }] };
    expect(openaiResponses.same(bare, cited as Item)).toBe(false);
  });
});
