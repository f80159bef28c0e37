import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { stepCountIs, streamText } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { boundaryWords, resultWords } from "../../../../../holdfast/src/view/model-words.ts";
import { SUMMARISE } from "../../../../src/agent/compaction.ts";
import { isWindowError } from "../../../../src/models/explain.ts";
import { ABILITIES } from "../../../../src/models/offline/kinds/words.ts";
import { offlineModel } from "../../../../src/models/offline/model.ts";
import { type Reply, replyTo } from "../../../../src/models/offline/reply.ts";
import { makeTools } from "../../../../src/tools/tools.ts";
import { assistant, drive, outputOf, request, result, TOOLS, user, Workbench } from "./offline-workbench.ts";

const NOTHING = { started: [], ended: [], failed: [] };

/** The words of what it called, for comparing. */
function called({ calls }: Reply): string[] {
  return calls.map(
    ({ name, input }) => `${name} ${String(input["path"] ?? input["command"] ?? input["prompt"] ?? "")}`,
  );
}

function answered(reply: Reply, output: Parameters<typeof result>[1]): LanguageModelV4Message[] {
  return [assistant(reply), { role: "tool", content: reply.calls.map((call) => result(call, output)) }];
}

describe("tasks", () => {
  test("a rename searches, reads in parallel, edits in parallel, checks, and sums up", () => {
    const bench = new Workbench({ "src/a.ts": "tide", "src/b.ts": "tide tide", "src/c.ts": "none" });
    const { messages, answer } = drive(bench, "rename tide to wave in src");
    const steps = messages.flatMap(({ role, content }) =>
      role === "assistant"
        ? [content.flatMap((part) => (part.type === "tool-call" ? [part.toolName] : [])).join(" ")]
        : [],
    );
    expect(steps).toEqual(["search", "read read", "edit edit", "read read", ""]);
    expect(Object.fromEntries(bench.files)).toEqual({
      "src/a.ts": "wave",
      "src/b.ts": "wave wave",
      "src/c.ts": "none",
    });
    expect(answer).toContain("in 2 files");
  });

  test("a search that shows only the first lines is not all: every file is looked at", () => {
    const bench = new Workbench({ "src/a.ts": "tide", "src/b.ts": "tide", "src/c.ts": "none" });
    const run = bench.run.bind(bench);
    bench.run = (name, input) =>
      name === "search"
        ? "src/a.ts:1: tide\n[only the first 1 lines are shown: use a more specific pattern, or search a subfolder.]"
        : run(name, input);
    drive(bench, "rename tide to wave in src");
    expect(Object.fromEntries(bench.files)).toEqual({ "src/a.ts": "wave", "src/b.ts": "wave", "src/c.ts": "none" });
  });

  test("a count answers with a table and leaves it in a file", () => {
    const bench = new Workbench({ "docs/a.md": "one two\nthree\n", "docs/b.md": "" });
    const { answer } = drive(bench, "Count the words in docs to report.md");
    expect(bench.files.get("report.md")).toContain("| docs/a.md | 2 | 3 |");
    expect(answer).toContain("| **together** | 2 | 3 |");
  });

  test("a story has exactly as many lines as were asked for, and closes its code", () => {
    for (const lines of [1, 14, 15, 40, 1_000]) {
      const { text } = replyTo(request([user(`tell me a long story of ${lines} lines`)]));
      expect(text.split("\n")).toHaveLength(lines);
      expect(text.split("\n").filter((line) => line.startsWith("```")).length % 2).toBe(0);
    }
  });

  test("what it says it can do, it can: every example is understood", () => {
    for (const ability of ABILITIES) {
      const { text } = replyTo(request([user(ability)]));
      expect(text).not.toContain("I did not understand");
    }
    expect(replyTo(request([user("What is the meaning of life?")])).text).toContain("offline model");
  });

  test("text of several lines behind a path is the file's; lines that are each a task are steps", () => {
    const bench = new Workbench({});
    drive(bench, "write a.md: # Title\n\nrun away\nand 3. of it");
    expect(bench.files.get("a.md")).toBe("# Title\n\nrun away\nand 3. of it\n");
    drive(bench, "write b.txt: one\nappend b.txt: two");
    expect(bench.files.get("b.txt")).toBe("one\ntwo\n");
    drive(bench, "write c.js:\n```js\nlet a = 1;\n```");
    expect(bench.files.get("c.js")).toBe("let a = 1;\n");
  });

  test("only tools that the request offers are called", () => {
    const reply = replyTo(
      request(
        [user("write a.txt: x")],
        TOOLS.filter(({ name }) => name === "read"),
      ),
    );
    expect(reply.calls).toEqual([]);
    expect(reply.text).toContain('no tool "write"');
    const none = replyTo({ ...request([user("write a.txt: x")]), toolChoice: { type: "none" } });
    expect(none.calls).toEqual([]);
  });

  test("the agent's own tools answer in words that it reads", { timeout: 60_000 }, async () => {
    const cwd = await mkdtemp(join(tmpdir(), "offline-"));
    onTestFinished(() => rm(cwd, { recursive: true, force: true }));
    await writeFile(join(cwd, "a.txt"), "tide left\n");
    await writeFile(join(cwd, "empty.txt"), "");
    const context = {
      cwd,
      outputs: join(cwd, ".outputs"),
      process: async () => {},
      output: () => {},
      env: process.env,
    };
    const ask = async (prompt: string) => {
      const run = streamText({ model: offlineModel(), tools: makeTools(context), prompt, stopWhen: stepCountIs(30) });
      return run.text;
    };
    expect(await ask("rename tide to tideline in .")).toContain("in 1 file");
    expect(await ask("1. append empty.txt: x 2. append empty.txt: y 3. run false")).toContain("`false` failed");
    expect(await ask("count words in .")).toContain("| a.txt | 1 | 2 |");
    expect(await ask("read nothing.txt and a.txt")).toContain("there is no such file");
    expect(await readFile(join(cwd, "a.txt"), "utf8")).toBe("tideline left\n");
    expect(await readFile(join(cwd, "empty.txt"), "utf8")).toBe("x\ny\n");
  });
});

describe("after an interruption", () => {
  test("C4: an edit in doubt is looked at before it is made again", () => {
    const bench = new Workbench({ "a.txt": "old\n" });
    let messages: LanguageModelV4Prompt = [user('edit a.txt: replace "old" with "new"')];
    const look = replyTo(request(messages));
    messages = [...messages, ...answered(look, outputOf(bench, look.calls[0]!))];
    const edit = replyTo(request(messages));
    expect(called(edit)).toEqual(["edit a.txt"]);
    const doubt = resultWords("outcome-unknown", { kind: "killed" });
    messages = [...messages, ...answered(edit, { type: "error-text", value: doubt })];
    expect(called(replyTo(request(messages)))).toEqual(["read a.txt"]);
  });

  test("C4: a command in doubt is not run twice, unless that does no harm", () => {
    const doubt = { type: "error-text", value: resultWords("outcome-unknown", { kind: "killed" }) } as const;
    for (const [prompt, again] of [
      ["run git push", []],
      ["run echo x >> log", []],
      ["run npm test", ["shell npm test"]],
      ["run git push (safe to repeat)", ["shell git push"]],
      ["run tar cf out.tar . (makes out.tar)", ["read out.tar"]],
    ] as const) {
      const messages: LanguageModelV4Prompt = [user(prompt)];
      const reply = replyTo(request([...messages, ...answered(replyTo(request(messages)), doubt)]));
      expect(called(reply), prompt).toEqual(again);
      if (again.length === 0) expect(reply.text).toContain("may have taken effect");
    }
  });

  test("a call that never started is simply made", () => {
    const messages: LanguageModelV4Prompt = [user("run git push")];
    const value = resultWords("never-started", { kind: "signal", signal: "SIGHUP" });
    const reply = replyTo(
      request([...messages, ...answered(replyTo(request(messages)), { type: "error-text", value })]),
    );
    expect(called(reply)).toEqual(["shell git push"]);
  });

  test("a denied call is told, and not tried again; the other steps are done", () => {
    const messages: LanguageModelV4Prompt = [user("1. write a.txt: x 2. run ls")];
    const reason =
      "This call did not run: no rule allows it, and nobody is available to approve it. Continue without it.";
    const denied = { type: "execution-denied", reason } as const;
    const before = [...messages, ...answered(replyTo(request(messages)), denied)];
    const next = replyTo(request(before));
    expect(called(next)).toEqual(["shell ls"]);
    const end = replyTo(
      request([
        ...before,
        ...answered(next, { type: "error-text", value: resultWords("awaiting", { kind: "killed" }) }),
      ]),
    );
    expect(end.calls).toEqual([]);
    expect(end.text).toContain("it was not allowed (no rule allows it, and nobody is available to approve it).");
  });

  test("a call that always fails is given up", () => {
    const bench = new Workbench({});
    bench.run = () => {
      throw new Error("the disk is full");
    };
    for (const prompt of [
      "write a.txt: x",
      "count words in docs",
      "rename a to b in src",
      "delegate: x",
      "append a.txt: y",
    ]) {
      const { steps, answer } = drive(bench, prompt);
      expect(steps).toBeLessThan(8);
      expect(answer).toContain("the disk is full");
    }
  });

  test("a file that never fits into the window ends the task, and not in circles", () => {
    const bench = new Workbench({ "a.txt": "long\n" });
    const prompt = user("append a.txt: x");
    let messages: LanguageModelV4Prompt = [prompt];
    let reply = replyTo(request(messages));
    let rounds = 0;
    for (; reply.calls.length > 0 && rounds < 50; rounds++) {
      messages = [...messages, ...answered(reply, outputOf(bench, reply.calls[0]!)), user(SUMMARISE)];
      messages = [user(`[Summary of the conversation so far]\n\n${replyTo(request(messages, [])).text}`), prompt];
      reply = replyTo(request(messages));
    }
    expect(rounds).toBeLessThan(50);
    expect(reply.text).toContain("does not fit into my window");
  });

  test("a count goes on behind a summary for which its list was shortened, and reads no file twice", () => {
    const bench = new Workbench(Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => [`docs/${n}.md`, "a b\n"])));
    const prompt = user("count words in docs");
    let messages: LanguageModelV4Prompt = [prompt];
    const list = replyTo(request(messages));
    const listed = [...messages, ...answered(list, outputOf(bench, list.calls[0]!))];
    const reads = replyTo(request(listed));
    expect(reads.calls).toHaveLength(8);
    // As the agent shortens what is too long for the request: the oldest results first.
    const shortened = { type: "text", value: "1.md\n[shortened]" } as const;
    const content = reads.calls.map((call) => result(call, outputOf(bench, call)));
    const told = [prompt, ...answered(list, shortened), assistant(reads), { role: "tool" as const, content }];
    const summary = replyTo(request([...told, user(SUMMARISE)], [])).text;
    messages = [user(`[Summary of the conversation so far]\n\n${summary}`), prompt];
    const again = replyTo(request(messages));
    expect(called(again)).toEqual(["list docs"]);
    messages = [...messages, ...answered(again, outputOf(bench, again.calls[0]!))];
    const rest = replyTo(request(messages));
    expect(called(rest)).toEqual(["read docs/9.md"]);
    messages = [...messages, ...answered(rest, outputOf(bench, rest.calls[0]!))];
    const written = replyTo(request(messages));
    expect(String(written.calls[0]!.input["content"])).toContain("| **together** | 9 | 18 |");
  });

  test("an input of megabytes is streamed in pieces that somebody waits for", async () => {
    const { stream } = await offlineModel({ windowTokens: 10_000_000 }).doStream(
      request([user(`write a.txt: ${"x".repeat(2_000_000)}`)]),
    );
    const parts = await Array.fromAsync(stream as AsyncIterable<LanguageModelV4StreamPart>);
    const deltas = parts.flatMap((part) => (part.type === "tool-input-delta" ? [part.delta] : []));
    expect(deltas.length).toBeLessThanOrEqual(401);
    expect(JSON.parse(deltas.join(""))).toEqual({ path: "a.txt", content: `${"x".repeat(2_000_000)}\n` });
  });

  test("a new prompt leaves the old task; `continue` takes it up", () => {
    const old: LanguageModelV4Prompt = [user("write a.txt: x")];
    const doubt = resultWords("outcome-unknown", { kind: "killed" });
    const cut = [
      ...old,
      ...answered(replyTo(request(old)), { type: "error-text", value: doubt }),
      user(boundaryWords({ kind: "killed" }, NOTHING, false)),
    ];
    expect(called(replyTo(request([...cut, user("list src")])))).toEqual(["list src"]);
    expect(called(replyTo(request([...cut, user("Continue.")])))).toEqual(["read a.txt"]);
  });

  test("a prompt that comes in the middle of a task is done behind it", () => {
    const bench = new Workbench({});
    const start: LanguageModelV4Prompt = [user("1. write a.txt: x 2. write b.txt: y")];
    const first = replyTo(request(start));
    const messages = [...start, ...answered(first, outputOf(bench, first.calls[0]!)), user("write c.txt: z")];
    const second = replyTo(request(messages));
    expect(called(second)).toEqual(["write b.txt"]);
    const third = replyTo(request([...messages, ...answered(second, outputOf(bench, second.calls[0]!))]));
    expect(called(third)).toEqual(["write c.txt"]);
  });
});

async function partsOf(stream: ReadableStream<LanguageModelV4StreamPart>): Promise<LanguageModelV4StreamPart[]> {
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

describe("the stream", () => {
  test("deltas add up to what doGenerate answers", async () => {
    const model = offlineModel();
    for (const prompt of ["read a.txt, b.txt and c/ü😀.txt", "tell me a story of 60 lines", "think about tides"]) {
      const options = request([user(prompt)]);
      const parts = await partsOf((await model.doStream(options)).stream);
      const { content, usage } = await model.doGenerate(options);
      const streamed = (type: string) =>
        parts.map((part) => (part.type === type && "delta" in part ? part.delta : "")).join("");
      expect(streamed("text-delta")).toBe(content.map((part) => (part.type === "text" ? part.text : "")).join(""));
      expect(streamed("reasoning-delta")).toBe(
        content.map((part) => (part.type === "reasoning" ? part.text : "")).join(""),
      );
      expect(parts.filter(({ type }) => type === "tool-call")).toEqual(
        content.filter(({ type }) => type === "tool-call"),
      );
      expect(parts.at(-1)).toMatchObject({ type: "finish", usage });
    }
  });

  test("it can be aborted between two deltas, and while it hangs", async () => {
    for (const prompt of ["tell me a story of 1000 lines", "hang", "hang after 4 words"]) {
      const abort = new AbortController();
      const model = offlineModel({ delayMs: 1 });
      const { stream } = await model.doStream({ ...request([user(prompt)]), abortSignal: abort.signal });
      const reader = stream.getReader();
      await reader.read();
      const why = new Error("stopped by the test");
      const rest = (async () => {
        while (!(await reader.read()).done);
      })();
      abort.abort(why);
      await expect(rest).rejects.toBe(why);
    }
  });

  test("more than the window holds is refused as a provider does; a summary never is", async () => {
    const model = offlineModel({ windowTokens: 100 });
    const long = user("x ".repeat(400));
    const refused = await Promise.resolve(model.doStream(request([long]))).catch((error: unknown) => error);
    expect(isWindowError(refused)).toBe(true);
    const { content } = await model.doGenerate(request([long, user("Summarise this conversation so far.")], []));
    expect(JSON.stringify(content)).toContain("The task");
  });
});

describe("failures that a prompt asks for", () => {
  const outcome = async (prompt: LanguageModelV4Prompt) => {
    const model = offlineModel();
    try {
      return await partsOf((await model.doStream(request(prompt))).stream);
    } catch (error) {
      return error as Error & { statusCode?: number };
    }
  };

  test("a status, a broken connection, an error in the stream, a refusal", async () => {
    expect(await outcome([user("fail: 500")])).toMatchObject({ statusCode: 500, isRetryable: true });
    expect(await outcome([user("fail: 401")])).toMatchObject({ statusCode: 401, isRetryable: false });
    expect(isWindowError(await outcome([user("fail: window")]))).toBe(true);
    expect(await outcome([user("fail: cut after 3 words")])).toMatchObject({ message: "terminated" });
    expect(await outcome([user("fail: unreachable")])).toMatchObject({ cause: { code: "ECONNREFUSED" } });
    expect(await outcome([user("fail: error after 2 words")])).toContainEqual(
      expect.objectContaining({ type: "error" }),
    );
    expect(await outcome([user("fail: refuse")])).toContainEqual(
      expect.objectContaining({ finishReason: { unified: "content-filter", raw: "refusal" } }),
    );
  });

  test("with a task behind it, the failure is over when the user says to go on", () => {
    const messages: LanguageModelV4Prompt = [user("fail: cut after 3 words, then: write a.txt: x")];
    expect(replyTo(request(messages)).failure).toMatchObject({ kind: "cut", words: 3 });
    const left = user(boundaryWords({ kind: "failed", error: "terminated" }, NOTHING, true));
    const resumed = replyTo(request([...messages, left, user("continue")]));
    expect(resumed.failure).toBeNull();
    expect(called(resumed)).toEqual(["write a.txt"]);
  });
});
