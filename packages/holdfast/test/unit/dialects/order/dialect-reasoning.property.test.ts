import { validateOpenaiResponses } from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../../../src/dialects/dialect.ts";
import { openaiResponses } from "../../../../src/dialects/openai-responses.ts";
import { pair } from "../../../../src/dialects/order/pairing.ts";
import { holds, seedOf } from "../../../seed.ts";
import { entry } from "../dialect-conversations.ts";
import { told } from "../provider-judges.ts";

/**
 * Reasoning of OpenAI Responses goes with the item that it led to, or not at all. A response may end after its
 * reasoning alone (no tokens were left), or be recorded item by item and lose its end with the process; then the model
 * is asked again, and another response stands right behind. Judged at every record, by what the responses really were.
 */
const seed = seedOf(import.meta.url, "unit");

// biome-ignore lint/suspicious/noExplicitAny: items as the API gives them.
type Item = any;

const KINDS = [
  "reasoning",
  "unsealed",
  "message",
  "blank",
  "call",
  "custom",
  "shell",
  "patch",
  "local shell",
  "computer",
  "search",
  "files",
  "code",
  "image",
  "mcp",
  "mcp tools",
  "approval",
  "hosted shell",
  "tool search",
  "program",
] as const;
type Kind = (typeof KINDS)[number];

interface Response {
  readonly kinds: readonly Kind[];
  /** Recorded one by one, of which so many; else all at once. */
  readonly oneByOne: number | null;
  readonly next: "again" | "prompt" | "results and prompt";
}

const responses: fc.Arbitrary<Response[]> = fc.array(
  fc.record({
    kinds: fc.array(fc.constantFrom("reasoning" as const, ...KINDS), { minLength: 1, maxLength: 4 }),
    oneByOne: fc.oneof(fc.constant(null), fc.nat(4)),
    next: fc.constantFrom("again" as const, "again" as const, "prompt" as const, "results and prompt" as const),
  }),
  { maxLength: 5 },
);

/** Most are one item; some come with the output that the provider gave them. */
function itemsOf(kind: Kind, id: string): Item[] {
  const call = { id: `x_${id}`, call_id: `call_${id}` };
  const own = { status: "completed", id: `x_${id}` };
  const hosted = { environment: { type: "container_reference", container_id: "cntr_1" } };
  const stdout = { stdout: "", stderr: "", outcome: { type: "exit", exit_code: 0 } };
  switch (kind) {
    case "reasoning":
      return [{ type: "reasoning", id: `rs_${id}`, summary: [], encrypted_content: `sealed ${id}` }];
    case "unsealed":
      return [{ type: "reasoning", id: `rs_${id}`, summary: [] }];
    case "message":
    case "blank": {
      const text = kind === "blank" ? " " : "so";
      return [{ type: "message", id: `msg_${id}`, role: "assistant", content: [{ type: "output_text", text }] }];
    }
    case "call":
      return [{ type: "function_call", id: `fc_${id}`, call_id: `call_${id}`, name: "read", arguments: "{}" }];
    case "custom":
      return [{ type: "custom_tool_call", id: `ctc_${id}`, call_id: `call_${id}`, name: "sh", input: "ls" }];
    case "shell":
      return [{ type: "shell_call", ...call, action: { commands: ["ls"] }, status: "completed" }];
    case "patch":
      return [
        { type: "apply_patch_call", ...call, operation: { type: "delete_file", path: "a" }, status: "completed" },
      ];
    case "local shell":
      return [
        { type: "local_shell_call", ...call, action: { type: "exec", command: ["ls"], env: {} }, status: "completed" },
      ];
    case "computer":
      return [{ type: "computer_call", ...call, action: { type: "screenshot" }, status: "completed" }];
    case "search":
      return [{ type: "web_search_call", ...own, action: { type: "search", query: "x" } }];
    case "files":
      return [{ type: "file_search_call", ...own, queries: ["x"] }];
    case "code":
      return [{ type: "code_interpreter_call", ...own, code: "1", container_id: "cntr_1", outputs: [] }];
    case "image":
      return [{ type: "image_generation_call", ...own, result: "iVBORw0KGgo=" }];
    case "mcp":
      return [{ type: "mcp_call", ...own, name: "roll", arguments: "{}", server_label: "dice", output: "4" }];
    case "mcp tools":
      return [{ type: "mcp_list_tools", id: `x_${id}`, server_label: "dice", tools: [] }];
    case "approval":
      return [{ type: "mcp_approval_request", id: `x_${id}`, name: "roll", arguments: "{}", server_label: "dice" }];
    case "hosted shell":
      return [
        { type: "shell_call", ...call, ...hosted, action: { commands: ["ls"] }, status: "completed" },
        { type: "shell_call_output", id: `o_${id}`, call_id: call.call_id, output: [stdout], status: "completed" },
      ];
    case "tool search":
      return [
        { type: "tool_search_call", ...own, execution: "server", call_id: null, arguments: {} },
        {
          type: "tool_search_output",
          id: `o_${id}`,
          execution: "server",
          call_id: null,
          status: "completed",
          tools: [],
        },
      ];
    case "program":
      return [
        { type: "program", ...call, code: "1" },
        { type: "program_output", id: `o_${id}`, call_id: call.call_id, result: "1", status: "completed" },
      ];
  }
}

/** What the application answers to an item, if anything. */
function answersTo(item: Item): Item[] {
  if (item.type === "mcp_approval_request") {
    return [{ type: "mcp_approval_response", approval_request_id: item.id, approve: true }];
  }
  if (item.type === "computer_call") {
    const output = { type: "computer_screenshot", image_url: "data:image/png;base64,iVBORw0KGgo=" };
    return [{ type: "computer_call_output", call_id: item.call_id, output }];
  }
  const call = openaiResponses.calls(item).find(({ by }) => by === "agent");
  return call ? [{ type: "function_call_output", call_id: call.id, output: "done" }] : [];
}

interface Lived {
  readonly entries: Entry<Item>[];
  /** As they came. */
  readonly responses: Item[][];
}

function lived(made: readonly Response[]): Lived {
  const entries: Entry<Item>[] = [];
  const came: Item[][] = [];
  const add = (message: Item, step?: string): void => {
    entries.push(entry(message, entries.length, step === undefined ? {} : { step }) as Entry<Item>);
  };
  add({ role: "user", content: "go" });
  for (const [n, { kinds, oneByOne, next }] of made.entries()) {
    const items = kinds.flatMap((kind, at) => itemsOf(kind, `${n}_${at}`));
    came.push(items);
    const recorded = oneByOne === null ? items : items.slice(0, 1 + (oneByOne % items.length));
    for (const item of recorded) add(item, oneByOne === null ? `response ${n}` : undefined);
    // A model is not asked while a call is open.
    for (const answer of next === "prompt" ? [] : recorded.flatMap(answersTo)) add(answer);
    if (next.endsWith("prompt")) add({ role: "user", content: "and?" });
  }
  return { entries, responses: came };
}

/** As the sessions layer goes on: every open call gets a result, and the step of one that can have none is left out. */
function repaired(entries: readonly Entry<Item>[]): Entry<Item>[] {
  const out = [...entries];
  const without = new Set<string>();
  for (const { call, answer, entry: at } of pair(entries, openaiResponses).exchanges.at(-1)!.calls) {
    if (answer || call.by === "provider") continue;
    const message = openaiResponses.result(call, { error: "unknown" });
    if (message) out.push(entry(message, out.length) as Entry<Item>);
    else without.add(entries[at]!.step);
  }
  return out.filter(({ step }) => !without.has(step));
}

const shown = (entries: readonly Entry<Item>[], view: Partial<View> = {}): Item[] =>
  openaiResponses.arrange(entries, { changedAt: null, next: "model", ...view });
const judged = (entries: readonly Entry<Item>[], { responses: came }: Lived, view: Partial<View> = {}): string =>
  told(validateOpenaiResponses(shown(entries, view), { responses: came }));

describe("openai-responses: reasoning and what it led to", () => {
  test("P4: at every record of a random life, repaired and asked again, or with a prompt", () => {
    holds(
      fc.property(responses, (made) => {
        const life = lived(made);
        for (let end = 1; end <= life.entries.length; end++) {
          // What was recorded at once is there at once.
          if (life.entries[end]?.step.startsWith("response") && life.entries[end]!.step === life.entries[end - 1]!.step)
            continue;
          const some = repaired(life.entries.slice(0, end));
          expect(judged(some, life)).toBe("");
          const prompt = entry({ role: "user", content: "and now?" }, 1000) as Entry<Item>;
          expect(judged([...some, prompt], life)).toBe("");
        }
      }),
      seed,
      1500,
    );
  });

  test("R1, R4: behind a past that was changed, and with another model", () => {
    holds(
      fc.property(responses, fc.nat(), fc.nat(), (made, from, until) => {
        const life = lived(made);
        const all = [...repaired(life.entries), entry({ role: "user", content: "and now?" }, 1000) as Entry<Item>];
        const changedAt = all[from % all.length]!.id;
        const changedUntil = all[until % all.length]!.id;
        expect(judged(all, life, { changedAt })).toBe("");
        expect(judged(all, life, { changedAt, changedUntil })).toBe("");
        const mixed = all.map((one, at) => ({ ...one, model: at < from % all.length ? "old" : "new" }));
        expect(judged(mixed, life, { model: "new" })).toBe("");
      }),
      seed,
      600,
    );
  });

  test("R1: what comes later changes nothing of it", () => {
    holds(
      fc.property(responses, (made) => {
        const { entries } = lived(made);
        const whole = shown(repaired(entries));
        for (let end = 1; end <= entries.length; end++) {
          const isHalf = entries[end]?.step.startsWith("response") && entries[end]!.step === entries[end - 1]!.step;
          const some = entries.slice(0, end);
          const isOpen = pair(some, openaiResponses).exchanges.some(({ calls }) =>
            calls.some(({ answer }) => answer === null),
          );
          if (isHalf || isOpen) continue;
          const before = shown(some);
          expect(whole.slice(0, before.length)).toEqual(before);
        }
      }),
      seed,
      600,
    );
  });

  const reasoning = (n: number): Item => itemsOf("reasoning", String(n))[0];
  const said = (n: number): Item => itemsOf("message", String(n))[0];
  const loose = ({ id: _, ...item }: Item): Item => item;
  const steps = (...given: (Item | Item[])[]): Entry<Item>[] =>
    given.flatMap((step, n) =>
      [step].flat().map((item: Item, at: number) => entry(item, n * 10 + at, { step: `s${n}` }) as Entry<Item>),
    );
  const user = { role: "user", content: "go" };

  test("a response that ended after its reasoning alone stays dead in front of the next answer", () => {
    expect(shown(steps(user, [reasoning(1)], [said(2)]))).toEqual([user, loose(said(2))]);
    expect(shown(steps(user, [reasoning(1)], [reasoning(2), said(2)]))).toEqual([user, reasoning(2), said(2)]);
    expect(shown(steps(user, [reasoning(1)], [reasoning(2)], [said(3)]))).toEqual([user, loose(said(3))]);
  });

  test("items that were appended one by one may be of two responses: reasoning goes, and what is behind it goes without ids", () => {
    const [call] = itemsOf("call", "1");
    const output = { type: "function_call_output", call_id: "call_1", output: "done" };
    expect(shown(steps(user, reasoning(1), said(1), call, output))).toEqual([
      user,
      loose(said(1)),
      loose(call),
      output,
    ]);
    expect(shown(steps(user, [reasoning(1), said(1), call], output))).toEqual([
      user,
      reasoning(1),
      said(1),
      call,
      output,
    ]);
  });
});
