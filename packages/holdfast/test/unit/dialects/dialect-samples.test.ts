import { validateAnthropic, validateGemini, validateOpenaiResponses } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import { acp } from "../../../src/dialects/acp.ts";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import { anthropic } from "../../../src/dialects/anthropic.ts";
import type { Dialect, Entry, View } from "../../../src/dialects/dialect.ts";
import { gemini } from "../../../src/dialects/gemini.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";
import { entry } from "./dialect-conversations.ts";
import { told } from "./provider-judges.ts";

/**
 * One sample of everything that a provider or a person, and not the agent, may answer: which call it is, with which
 * input, and where it stands in a request.
 */

// biome-ignore lint/suspicious/noExplicitAny: messages as the APIs have them.
type Message = any;

interface Sample {
  /** What the message says of its calls: id, name, input, by, and whether it waits. */
  readonly calls: readonly (readonly [
    id: string,
    name: string,
    input: unknown,
    by: "agent" | "provider",
    waits?: true,
  ])[];
  readonly results: readonly string[];
  readonly role?: string;
  readonly text?: string;
}

function checkSample(dialect: Dialect<Message>, message: Message, sample: Sample): void {
  expect(dialect.check(message)).toBeNull();
  const found = dialect
    .calls(message)
    .map(({ id, name, input, by, awaiting }) => [id, name, input, by, awaiting === true]);
  expect(found).toEqual(sample.calls.map(([id, name, input, by, waits]) => [id, name, input, by, waits === true]));
  expect(dialect.results(message).map(({ call }) => call)).toEqual(sample.results);
  expect(dialect.role(message)).toBe(sample.role ?? "assistant");
  expect(dialect.text(message)).toBe(sample.text ?? "");
}

const user = { role: "user", content: "go" };

function arranged(dialect: Dialect<Message>, steps: (Message | Message[])[], view: Partial<View> = {}): Message[] {
  const entries: Entry<Message>[] = [];
  for (const [n, step] of steps.entries()) {
    for (const message of Array.isArray(step) ? step : [step])
      entries.push(entry(message, entries.length, { step: `s${n}` }));
  }
  return dialect.arrange(entries, { changedAt: null, next: "model", ...view });
}

describe("openai-responses", () => {
  const done = { status: "completed" };
  const hosted = { environment: { type: "container_reference", container_id: "cntr_1" } };
  const samples: [name: string, item: Message, sample: Sample][] = [
    [
      "web_search_call",
      { type: "web_search_call", id: "ws_1", ...done, action: { type: "search", query: "x" } },
      { calls: [["ws_1", "web_search_call", { type: "search", query: "x" }, "provider"]], results: ["ws_1"] },
    ],
    [
      "web_search_call that runs",
      { type: "web_search_call", id: "ws_1", status: "searching", action: { type: "search", query: "x" } },
      { calls: [["ws_1", "web_search_call", { type: "search", query: "x" }, "provider"]], results: [] },
    ],
    [
      "file_search_call",
      { type: "file_search_call", id: "fs_1", ...done, queries: ["x"], results: null },
      { calls: [["fs_1", "file_search_call", ["x"], "provider"]], results: ["fs_1"] },
    ],
    [
      "code_interpreter_call, whose code is no JSON of ours",
      { type: "code_interpreter_call", id: "ci_1", ...done, code: "[1]", container_id: "cntr_1", outputs: [] },
      { calls: [["ci_1", "code_interpreter_call", "[1]", "provider"]], results: ["ci_1"] },
    ],
    [
      "code_interpreter_call that runs",
      { type: "code_interpreter_call", id: "ci_1", status: "interpreting", code: "1", container_id: "cntr_1" },
      { calls: [["ci_1", "code_interpreter_call", "1", "provider"]], results: [] },
    ],
    [
      "image_generation_call",
      { type: "image_generation_call", id: "ig_1", ...done, revised_prompt: "a cat", result: "iVBORw0KGgo=" },
      { calls: [["ig_1", "image_generation_call", "a cat", "provider"]], results: ["ig_1"] },
    ],
    [
      "mcp_call",
      { type: "mcp_call", id: "mcp_1", ...done, name: "roll", arguments: '{"n":2}', server_label: "dice", output: "4" },
      { calls: [["mcp_1", "roll", { n: 2 }, "provider"]], results: ["mcp_1"] },
    ],
    [
      "mcp_call that runs",
      { type: "mcp_call", id: "mcp_1", status: "calling", name: "roll", arguments: '{"n":', server_label: "dice" },
      { calls: [["mcp_1", "roll", '{"n":', "provider"]], results: [] },
    ],
    [
      "mcp_list_tools",
      { type: "mcp_list_tools", id: "mcpl_1", server_label: "dice", tools: [] },
      { calls: [], results: [] },
    ],
    [
      "mcp_approval_request",
      { type: "mcp_approval_request", id: "mcpr_1", name: "roll", arguments: "{}", server_label: "dice" },
      { calls: [["mcpr_1", "roll", {}, "provider", true]], results: [] },
    ],
    [
      "mcp_approval_response",
      { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: false },
      { calls: [], results: ["mcpr_1"], role: "user" },
    ],
    [
      "computer_call",
      { type: "computer_call", id: "cu_1", call_id: "call_1", action: { type: "screenshot" }, ...done },
      { calls: [["call_1", "computer_call", { type: "screenshot" }, "agent"]], results: [] },
    ],
    [
      "computer_call with several actions",
      { type: "computer_call", id: "cu_1", call_id: "call_1", actions: [{ type: "wait" }], ...done },
      { calls: [["call_1", "computer_call", [{ type: "wait" }], "agent"]], results: [] },
    ],
    [
      "local_shell_call, which is answered by its id",
      { type: "local_shell_call", id: "lsh_1", action: { type: "exec", command: ["ls"], env: {} }, ...done },
      { calls: [["lsh_1", "local_shell_call", { type: "exec", command: ["ls"], env: {} }, "agent"]], results: [] },
    ],
    [
      "shell_call of ours",
      { type: "shell_call", id: "sh_1", call_id: "call_1", action: { commands: ["ls"] }, ...done },
      { calls: [["call_1", "shell_call", { commands: ["ls"] }, "agent"]], results: [] },
    ],
    [
      "shell_call in a container of the provider's",
      { type: "shell_call", id: "sh_1", call_id: "call_1", action: { commands: ["ls"] }, ...hosted, ...done },
      { calls: [["call_1", "shell_call", { commands: ["ls"] }, "provider"]], results: [] },
    ],
    [
      "shell_call_output of the provider's",
      { type: "shell_call_output", id: "sho_1", call_id: "call_1", output: [], ...done },
      { calls: [], results: ["call_1"] },
    ],
    [
      "shell_call_output of ours",
      { type: "shell_call_output", call_id: "call_1", output: [] },
      { calls: [], results: ["call_1"], role: "tool" },
    ],
    [
      "apply_patch_call",
      {
        type: "apply_patch_call",
        id: "ap_1",
        call_id: "call_1",
        operation: { type: "delete_file", path: "a" },
        ...done,
      },
      { calls: [["call_1", "apply_patch_call", { type: "delete_file", path: "a" }, "agent"]], results: [] },
    ],
    [
      "custom_tool_call, whose input is text",
      { type: "custom_tool_call", id: "ctc_1", call_id: "call_1", name: "sh", input: "[1]" },
      { calls: [["call_1", "sh", "[1]", "agent"]], results: [] },
    ],
    [
      "tool_search_call of the server",
      { type: "tool_search_call", id: "ts_1", execution: "server", call_id: null, arguments: { q: 1 }, ...done },
      { calls: [["ts_1", "tool_search_call", { q: 1 }, "provider"]], results: [] },
    ],
    [
      "tool_search_output of the server",
      { type: "tool_search_output", id: "ts_1", execution: "server", call_id: null, tools: [], ...done },
      { calls: [], results: ["ts_1"] },
    ],
    [
      "tool_search_call of ours",
      { type: "tool_search_call", id: "ts_1", execution: "client", call_id: "call_1", arguments: { q: 1 }, ...done },
      { calls: [["call_1", "tool_search_call", { q: 1 }, "agent"]], results: [] },
    ],
    [
      "tool_search_output of ours",
      { type: "tool_search_output", execution: "client", call_id: "call_1", tools: [] },
      { calls: [], results: ["call_1"], role: "tool" },
    ],
    [
      "program",
      { type: "program", id: "pr_1", call_id: "call_1", code: "await read()" },
      { calls: [["call_1", "program", "await read()", "provider"]], results: [] },
    ],
    [
      "program_output",
      { type: "program_output", id: "po_1", call_id: "call_1", result: "1", ...done },
      { calls: [], results: ["call_1"] },
    ],
    ["compaction", { type: "compaction", id: "cmp_1", encrypted_content: "x" }, { calls: [], results: [] }],
    ["compaction_trigger", { type: "compaction_trigger" }, { calls: [], results: [], role: "system" }],
    ["additional_tools", { type: "additional_tools", tools: [] }, { calls: [], results: [], role: "system" }],
    ["item_reference", { type: "item_reference", id: "msg_1" }, { calls: [], results: [], role: "other" }],
    [
      "a refusal",
      { type: "message", id: "msg_1", role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      { calls: [], results: [], text: "No." },
    ],
  ];

  test.each(samples)("%s", (_, item, sample) => checkSample(openaiResponses, item, sample));

  const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" };
  const said = { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "so" }] };
  const judged = (view: Message[], ...responses: Message[][]): string =>
    told(validateOpenaiResponses(view, { responses }));

  test("every item that the provider finished by itself goes back as it came, behind its reasoning", () => {
    for (const [name, item] of samples) {
      const [call] = openaiResponses.calls(item);
      if (call?.by !== "provider" || openaiResponses.results(item).length === 0) continue;
      const response = [reasoning, item, said];
      const view = arranged(openaiResponses, [user, response, user]);
      expect([name, view]).toEqual([name, [user, ...response, user]]);
      expect([name, judged(view, response)]).toEqual([name, ""]);
    }
  });

  test("an unfinished one is left out with its step once a prompt follows", () => {
    for (const [name, item] of samples.filter(([kind]) => kind.endsWith("that runs"))) {
      expect([name, arranged(openaiResponses, [user, [reasoning, item], user])]).toEqual([name, [user, user]]);
    }
  });

  test("a shell in a container of the provider's: with the output that came, in the response or as an item of its own", () => {
    const call = { type: "shell_call", id: "sh_1", call_id: "call_1", action: { commands: ["ls"] }, ...hosted };
    const output = { type: "shell_call_output", id: "sho_1", call_id: "call_1", output: [] };
    const response = [reasoning, call, output, said];
    expect(arranged(openaiResponses, [user, response])).toEqual([user, ...response]);
    expect(judged(arranged(openaiResponses, [user, response, user]), response)).toBe("");
    const { id: _, ...bare } = output;
    const apart = arranged(openaiResponses, [user, [reasoning, call], bare, user]);
    expect(apart).toEqual([user, reasoning, call, bare, user]);
    // Behind a change of the past neither has an id, which would refer to reasoning that is not there.
    const { id: __, ...looseCall } = call;
    expect(arranged(openaiResponses, [user, [reasoning, call], bare, user], { changedAt: "e0" })).toEqual([
      user,
      looseCall,
      bare,
      user,
    ]);
    // Without an output nothing can be told of it, and nobody goes on with it.
    expect(arranged(openaiResponses, [user, [reasoning, call]])).toEqual([user]);
  });

  test("an approval goes with its request; without its reasoning neither is sent", () => {
    const request = { type: "mcp_approval_request", id: "mcpr_1", name: "roll", arguments: "{}", server_label: "dice" };
    const response = { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true };
    const { encrypted_content: _, ...unsealed } = reasoning;
    expect(arranged(openaiResponses, [user, [reasoning, request], response])).toEqual([
      user,
      reasoning,
      request,
      response,
    ]);
    expect(arranged(openaiResponses, [user, [unsealed, request], response, user])).toEqual([user, user]);
  });

  test("calls that a program makes: the program stays open for their outputs, and the outputs name it", () => {
    const program = { type: "program", id: "pr_1", call_id: "call_p", code: "await read()" };
    const caller = { type: "program", caller_id: "call_p" };
    const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "read", arguments: "{}", caller };
    expect(openaiResponses.calls(call)).toMatchObject([{ id: "call_1", caller: "call_p" }]);
    const output = { type: "function_call_output", call_id: "call_1", output: "ok" };
    expect(arranged(openaiResponses, [user, [program, call], output])).toEqual([
      user,
      program,
      call,
      { ...output, caller },
    ]);
  });

  test("outputs of our own kinds: as they are, phrased, and joined where they are lists", () => {
    const shell = { type: "shell_call", id: "sh_1", call_id: "call_1", action: { commands: ["ls"] } };
    const custom = { type: "custom_tool_call", id: "ctc_1", call_id: "call_1", name: "sh", input: 7 };
    const parts = [
      { type: "input_text", text: "one" },
      { type: "input_text", text: "two" },
    ];
    const told = { type: "function_call_output", call_id: "call_1", output: parts };
    expect(arranged(openaiResponses, [user, [shell], told])[2]).toEqual({
      type: "shell_call_output",
      call_id: "call_1",
      output: [{ stdout: "one\ntwo", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
    });
    const view = arranged(openaiResponses, [user, [custom], told]);
    expect(view[1]).toEqual({ ...custom, input: "" });
    expect(view[2]).toEqual({ type: "custom_tool_call_output", call_id: "call_1", output: parts });
  });

  test("a late result between the items of a response does not part reasoning from what it led to", () => {
    const entries = [
      entry(user, 0),
      entry(reasoning, 1, { step: "s" }),
      entry({ type: "function_call_output", call_id: "gone", output: "late" }, 2, { late: true }),
      entry(said, 3, { step: "s" }),
    ];
    expect(openaiResponses.arrange(entries as Entry<Message>[], { changedAt: null, next: "model" })).toEqual([
      user,
      reasoning,
      said,
    ]);
  });

  test("what belongs to another dialect is refused, with its place", () => {
    const content = [{ type: "image_url", image_url: { url: "data:" } }];
    expect(openaiResponses.check({ type: "message", role: "user", content } as Message)).toContain("content[0]");
  });
});

describe("anthropic", () => {
  const names = [
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
  ];
  const resultOf = (name: string): string =>
    name.startsWith("tool_search") ? "tool_search_tool_result" : `${name}_tool_result`;
  const says = (...content: Message[]): Message => ({ role: "assistant", content });

  test.each(names)("server_tool_use of %s: its call, its input, its result, and back as it came", (name) => {
    const call = { type: "server_tool_use", id: "srvtoolu_1", name, input: { q: 1 } };
    const result = { type: resultOf(name), tool_use_id: "srvtoolu_1", content: [] };
    checkSample(anthropic, says(call), { calls: [["srvtoolu_1", name, { q: 1 }, "provider"]], results: [] });
    const whole = says(call, result, { type: "text", text: "so" });
    checkSample(anthropic, whole, {
      calls: [["srvtoolu_1", name, { q: 1 }, "provider"]],
      results: ["srvtoolu_1"],
      text: "so",
    });
    const view = arranged(anthropic, [user, whole, user]);
    expect(view).toEqual([user, whole, user]);
    expect(told(validateAnthropic(view))).toBe("");
    // Paused, and finished by the next response; or left out, if somebody else speaks.
    expect(arranged(anthropic, [user, says(call)])).toEqual([user, says(call)]);
    expect(arranged(anthropic, [user, says(call), says(result)])).toEqual([user, says(call, result)]);
    expect(arranged(anthropic, [user, says(call), user])).toEqual([
      { role: "user", content: [text("go"), text("go")] },
    ]);
  });

  const text = (words: string): Message => ({ type: "text", text: words });

  test("mcp_tool_use", () => {
    const call = { type: "mcp_tool_use", id: "mcptoolu_1", name: "roll", server_name: "dice", input: { n: 1 } };
    const result = { type: "mcp_tool_result", tool_use_id: "mcptoolu_1", is_error: false, content: [] };
    checkSample(anthropic, says(call, result), {
      calls: [["mcptoolu_1", "roll", { n: 1 }, "provider"]],
      results: ["mcptoolu_1"],
    });
    expect(told(validateAnthropic(arranged(anthropic, [user, says(call, result), user])))).toBe("");
  });

  test("a result of the provider's without its call, or a second one, is left out", () => {
    const call = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
    const result = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
    expect(arranged(anthropic, [user, says(result, text("so")), user])).toEqual([user, says(text("so")), user]);
    expect(arranged(anthropic, [user, says(call, result, result), user])).toEqual([user, says(call, result), user]);
  });

  test("a result that stands in the assistant's message answers an agent's call as a result of the user's", () => {
    const call = { type: "tool_use", id: "t1", name: "read", input: {} };
    const odd = { type: "web_search_tool_result", tool_use_id: "t1", content: [] };
    const view = arranged(anthropic, [user, [says(call), says(odd)], user]);
    expect(told(validateAnthropic(view))).toBe("");
    expect(view[2].content[0]).toEqual({ type: "tool_result", tool_use_id: "t1" });
  });

  test("marks inside a result count with the others", () => {
    const marked = (words: string): Message => ({ ...text(words), cache_control: { type: "ephemeral" } });
    const steps: Message[] = [user];
    for (const id of ["t1", "t2", "t3"]) {
      steps.push(says({ type: "tool_use", id, name: "read", input: {} }));
      const content = [marked("a"), marked("b")];
      steps.push({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] });
    }
    const view = arranged(anthropic, steps);
    expect(JSON.stringify(view).match(/cache_control/g)).toHaveLength(2);
    expect(JSON.stringify(view.at(-1)).match(/cache_control/g)).toHaveLength(2);
  });

  test("a text block without a text is refused, with its place", () => {
    expect(anthropic.check({ role: "user", content: [{ type: "text" }] })).toBe("content[0] has no text");
  });
});

describe("gemini", () => {
  const asks = { role: "user", parts: [{ text: "go" }] };
  const samples: [name: string, call: Message, result: Message, expected: Sample["calls"][number]][] = [
    [
      "code execution",
      { executableCode: { language: "PYTHON", code: "1" } },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
      ["code execution#0", "code execution", "1", "provider"],
    ],
    [
      "code execution with an id",
      { executableCode: { id: "x", language: "PYTHON", code: "1" } },
      { codeExecutionResult: { id: "x", outcome: "OUTCOME_OK", output: "1" } },
      ["x", "code execution", "1", "provider"],
    ],
    [
      "a tool of the server's",
      { toolCall: { id: "y", toolType: "GOOGLE_SEARCH_WEB", args: { q: 1 } } },
      { toolResponse: { id: "y", toolType: "GOOGLE_SEARCH_WEB", response: {} } },
      ["y", "GOOGLE_SEARCH_WEB", { q: 1 }, "provider"],
    ],
    [
      "a tool of the server's without a name",
      { toolCall: { id: "y", args: {} } },
      { toolResponse: { id: "y", response: {} } },
      ["y", "server tool", {}, "provider"],
    ],
  ];

  test.each(samples)("%s: its call, its input, its result, and back as it came", (_, call, result, expected) => {
    const whole = { role: "model", parts: [call, result, { text: "so" }] };
    checkSample(gemini, whole, { calls: [expected], results: [expected[0]], text: "so" });
    const view = arranged(gemini, [asks, whole, asks]);
    expect(view).toEqual([asks, whole, asks]);
    expect(told(validateGemini(view, { signatures: "optional" }))).toBe("");
    // It never leaves one for the next request; a result without its call is left out.
    expect(arranged(gemini, [asks, { role: "model", parts: [call, { text: "so" }] }])).toEqual([asks]);
    expect(arranged(gemini, [asks, { role: "model", parts: [result, { text: "so" }] }])).toEqual([
      asks,
      { role: "model", parts: [{ text: "so" }] },
    ]);
  });

  test("a call without arguments, and a response without one", () => {
    const call = { role: "model", parts: [{ functionCall: { name: "now" } }] };
    const answer = { role: "user", parts: [{ functionResponse: { name: "now" } }] };
    expect(arranged(gemini, [asks, call, answer])).toEqual([
      asks,
      call,
      { role: "user", parts: [{ functionResponse: { name: "now", response: { output: null } } }] },
    ]);
    expect(gemini.calls(call)).toMatchObject([{ name: "now", input: {} }]);
  });
});

describe("ai-sdk", () => {
  const says = (...content: Message[]): Message => ({ role: "assistant", content });
  const call = { type: "tool-call", toolCallId: "a", toolName: "read", input: { n: 1 } };
  const request = { type: "tool-approval-request", approvalId: "r", toolCallId: "a" };
  const answer = (approved: boolean): Message => ({
    role: "tool",
    content: [{ type: "tool-approval-response", approvalId: "r", approved }],
  });

  test("a call that the provider runs, and its result in the same message or in a later one", () => {
    const provided = { ...call, providerExecuted: true };
    const result = { type: "tool-result", toolCallId: "a", toolName: "read", output: { type: "json", value: [] } };
    checkSample(aiSdk, says(provided, result), { calls: [["a", "read", { n: 1 }, "provider"]], results: ["a"] });
    expect(arranged(aiSdk, [user, says(provided, result), user])).toEqual([user, says(provided, result), user]);
    expect(arranged(aiSdk, [user, says(provided), says(result)])).toEqual([user, says(provided, result)]);
    expect(arranged(aiSdk, [user, says(provided), user])).toEqual([user, user]);
  });

  test("a request for approval, which the SDK answers by itself or a person does", () => {
    checkSample(aiSdk, says(call, request), { calls: [["a", "read", { n: 1 }, "agent", true]], results: [] });
    checkSample(aiSdk, says(call, { ...request, isAutomatic: true }), {
      calls: [["a", "read", { n: 1 }, "agent"]],
      results: [],
    });
    expect(aiSdk.approvals!(answer(true))).toEqual([{ approval: "r", approved: true }]);
    expect(aiSdk.approvals!(answer(false))).toEqual([{ approval: "r", approved: false }]);
    expect(aiSdk.approvals!(user as Message)).toEqual([]);
    expect(arranged(aiSdk, [user, says(call, request), answer(true)])).toEqual([
      user,
      says(call, request),
      answer(true),
    ]);
  });

  test("an output of several parts goes as it is, and without those that are empty", () => {
    const output = (...value: Message[]): Message => ({
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "a", toolName: "read", output: { type: "content", value } }],
    });
    const image = { type: "image-data", data: "iVBORw0KGgo=", mediaType: "image/png" };
    const words = { type: "text", text: "so" };
    const whole = output(words, image);
    expect(arranged(aiSdk, [user, says(call), whole])[2]).toBe(whole);
    expect(arranged(aiSdk, [user, says(call), output({ type: "text", text: " " }, image)])[2]).toEqual(output(image));
  });

  test("a call that a person denied is told so, in the SDK's own kind of output", () => {
    const denied = aiSdk.result({ id: "a", name: "read", denied: true }, { error: "not now" });
    expect(denied).toMatchObject({ content: [{ output: { type: "execution-denied", reason: "not now" } }] });
    expect(arranged(aiSdk, [user, says(call, request), answer(false), denied]).slice(2)).toEqual([
      { role: "tool", content: [...answer(false).content, ...(denied as Message).content] },
    ]);
  });
});

describe("acp", () => {
  test("a request for permission makes the call, and waits", () => {
    const request = { sessionId: "s", toolCall: { toolCallId: "a", title: "Run it", rawInput: { n: 1 } }, options: [] };
    checkSample(acp, request, { calls: [["a", "Run it", { n: 1 }, "agent"]], results: [] });
    expect(arranged(acp, [request]).slice(1)).toEqual([
      { sessionUpdate: "tool_call", toolCallId: "a", title: "Run it", rawInput: { n: 1 } },
    ]);
  });

  test("what is missing is said", () => {
    expect(acp.check({ prompt: [] })).toBe("a prompt needs at least one block");
    expect(acp.check({ toolCall: {} })).toBe("toolCall has no toolCallId");
  });
});

describe("openai-chat", () => {
  const call = { id: "a", type: "function", function: { name: "read", arguments: "{}" } };

  test("a refusal, in a part and beside the content, and parts of text", () => {
    expect(openaiChat.text({ role: "assistant", content: [{ type: "refusal", refusal: "No." } as Message] })).toBe(
      "No.",
    );
    expect(openaiChat.text({ role: "assistant", content: null, refusal: "No." } as Message)).toBe("No.");
    expect(openaiChat.text({ role: "user", content: [{ type: "text", text: "So" } as Message] })).toBe("So");
  });

  test("a message that has its calls in the old form too is sent with the new one", () => {
    const both = { role: "assistant", content: null, tool_calls: [call], function_call: call.function };
    const answer = { role: "tool", tool_call_id: "a", content: "ok" };
    const { function_call: _, ...one } = both;
    expect(arranged(openaiChat, [user, both, answer])).toEqual([user, one, answer]);
  });

  test("the old form: arguments that were cut off, and a name that no API takes, in the call and in its answer", () => {
    const old = { role: "assistant", content: null, function_call: { name: "git diff", arguments: '{"pa' } };
    const answer = { role: "function", name: "git diff", content: "ok" };
    expect(arranged(openaiChat, [user, old, answer])).toEqual([
      user,
      { ...old, function_call: { name: "git_diff", arguments: JSON.stringify({ unparsed: '{"pa' }) } },
      { ...answer, name: "git_diff" },
    ]);
  });

  test("a custom tool's call, and a name that a model made up", () => {
    const custom = { id: "a", type: "custom", custom: { name: "sh -c", input: "[1]" } };
    const made = { role: "assistant", content: null, tool_calls: [custom] };
    const answer = { role: "tool", tool_call_id: "a", content: "ok" };
    expect(openaiChat.calls(made as Message)).toMatchObject([{ name: "sh -c", input: "[1]" }]);
    expect(arranged(openaiChat, [user, made, answer])[1].tool_calls).toEqual([
      { ...custom, custom: { name: "sh_-c", input: "[1]" } },
    ]);
  });
});
