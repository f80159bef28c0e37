import { expect, test } from "vitest";
import type { Line } from "../../../src/record/message.ts";
import { LineReader } from "../../../src/wrap/lines.ts";
import { type LongLine, longLineIn } from "../../../src/wrap/long-line.ts";
import { shimmed } from "../../shimmed.ts";
import { blocks, type RawEditor, rawEditor, said } from "../../wrapped.ts";

const MEBIBYTE = Buffer.alloc(2 ** 20, "x");
const FOLDER = { cwd: "/work", mcpServers: [] };

const bytesOf = (line: Line | LongLine) => ("raw" in line ? String(line.raw) : line);

async function newSession(editor: RawEditor): Promise<string> {
  return (await editor.ask("session/new", FOLDER)).result.sessionId;
}

test("a line that is too long is reported once, nothing of it comes out, and the next line is whole", () => {
  const long = `{"id":7,"method":"m","params":{"sessionId":"s","text":"${"x".repeat(100)}"}}\n`;
  const bytes = Buffer.from(`short\n${long}after\n${long.slice(0, -1)}`);
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new LineReader(80);
    const lines = [];
    for (let at = 0; at < bytes.length; at += size) lines.push(...reader.push(bytes.subarray(at, at + size)));
    expect(reader.end()).toBeNull();
    const report = { kind: "request", id: 7, method: "m", session: "s" };
    expect(lines.map(bytesOf)).toEqual([...["short\n", report, "after\n", report]]);
  }
  const exact = new LineReader(4);
  expect(exact.push(Buffer.from("abc\nabcd\n")).map((line) => "raw" in line)).toEqual([true, false]);
});

test("a line that comes in very many pieces is whole", () => {
  const reader = new LineReader();
  const line = Buffer.from(`${Array.from({ length: 3000 }, (_, n) => n).join(" ")}\n`);
  const lines = Array.from(line).flatMap((_, at) => reader.push(line.subarray(at, at + 1)));
  expect(lines.map(bytesOf)).toEqual([String(line)]);
  expect(reader.push(Buffer.from("a\nb")).map(bytesOf)).toEqual(["a\n"]);
  expect(bytesOf(reader.end()!)).toBe("b");
});

test("the beginning of a long line tells what it is", () => {
  const x = "x".repeat(70_000);
  const kind = (line: string) => {
    const { kind: what, id, method, session } = longLineIn([Buffer.from(line.slice(0, 5)), Buffer.from(line.slice(5))]);
    return [what, id, method, session];
  };
  expect(kind(`{"jsonrpc":"2.0","id":"a\\"b","result":{"id":1,"text":"${x}`)).toEqual(["response", 'a"b', null, null]);
  expect(kind(`{ "id" : 3 , "error" : "${x}`)).toEqual(["response", 3, null, null]);
  expect(kind(`{"id":3,"method":"fs/write","params":{"text":"${x}`)).toEqual(["request", 3, "fs/write", null]);
  expect(kind(`{"id":3,"params":{"sessionId":"s","text":"${x}`)).toEqual(["request", 3, null, "s"]);
  expect(
    kind(`{"method":"session/update","params":{"_meta":null,"sessionId":"s","update":{"id":4,"text":"${x}`),
  ).toEqual([...["unknown", null, "session/update", "s"]]);
  // What is inside of something else is not taken for the message's own.
  expect(kind(`{"result":{"id":4,"method":"m"},"id":5,"text":"${x}`)).toEqual(["unknown", null, null, null]);
  for (const line of [x, `"${x}`, `{"${x}`, `{"id":1e999,"result":"${x}`, `[{"id":1,"result":"${x}`])
    expect(kind(line)[0]).not.toBe("request");
});

test("a line of the agent that does not end stops its own turn, and the other sessions go on", async () => {
  await using editor = await rawEditor({});
  const [bad, good] = [await newSession(editor), await newSession(editor)];
  const pid = editor.wrapped.agent?.pid;
  const failed = await editor.ask("session/prompt", { sessionId: bad, prompt: blocks("before", "endless") });
  expect(failed.error.message).toMatch(/longer than 128 MiB/);
  const next = await editor.ask("session/prompt", { sessionId: good, prompt: blocks("hello") });
  expect(next.result).toEqual({ stopReason: "end_turn" });
  const again = await editor.ask("session/prompt", { sessionId: bad, prompt: blocks("again") });
  expect(again.result).toEqual({ stopReason: "end_turn" });
  expect(said(editor.seen).filter((words) => words.length < 20)).toEqual(["before", "hello", "again"]);
  expect(editor.wrapped.agent?.pid).toBe(pid);
  expect(editor.logged.join("\n")).toContain("a message of the agent is longer than 128 MiB");
});

test("an agent whose line does not end and is no message is ended: every prompt gets an answer", async () => {
  await using editor = await rawEditor({});
  const [one, two] = [await newSession(editor), await newSession(editor)];
  const waiting = editor.ask("session/prompt", { sessionId: one, prompt: blocks("wait") });
  const failed = await editor.ask("session/prompt", { sessionId: two, prompt: blocks("garbage") });
  expect([failed, await waiting].map(({ error }) => error.data)).toEqual([
    { interrupted: true },
    { interrupted: true },
  ]);
  const again = await editor.ask("session/prompt", { sessionId: one, prompt: blocks("again") });
  expect(again.result).toEqual({ stopReason: "end_turn" });
});

test("a request of the editor that does not end is refused, and what comes after it is read", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  editor.write(
    `{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":{"sessionId":"${sessionId}","prompt":"`,
  );
  for (let mebibytes = 0; mebibytes < 129; mebibytes++) editor.write(MEBIBYTE);
  const { error } = await editor.until(({ id }) => id === "long");
  expect(error.message).toMatch(/longer than 128 MiB/);
  editor.write('"}}\n');
  const next = await editor.ask("session/prompt", { sessionId, prompt: blocks("hello") });
  expect(next.result).toEqual({ stopReason: "end_turn" });
});

test("an answer of the editor that is too long reaches the agent as an error", async () => {
  await using editor = await rawEditor({});
  const sessionId = await newSession(editor);
  const running = editor.ask("session/prompt", { sessionId, prompt: blocks("ask one") });
  const { id } = await editor.until(({ method }) => method === "session/request_permission");
  editor.write(`{"jsonrpc":"2.0","id":${id},"result":{"outcome":"`);
  for (let mebibytes = 0; mebibytes < 129; mebibytes++) editor.write(MEBIBYTE);
  expect((await running).result).toEqual({ stopReason: "end_turn" });
  expect(said(editor.seen)).toEqual(["answer to ask one: undefined"]);
});

test.skipIf(process.platform === "win32")(
  "a shim refuses a line of the editor that does not end, between the lines of the agent",
  async () => {
    await using shim = await shimmed();
    shim.say('{"half":');
    await expect.poll(shim.shown).toBe('{"half":');
    shim.input.write('{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"prompt":"');
    for (let mebibytes = 0; mebibytes < 129; mebibytes++) shim.input.write(MEBIBYTE);
    await expect.poll(shim.logged).toContain("longer than 128 MiB");
    shim.say("1}\n");
    await expect.poll(shim.shown).toMatch(/MiB.*\n$/);
    shim.input.end('"}}\n{"jsonrpc":"2.0","method":"after"}\n');
    expect((await shim.over).type).toBe("ended");
    const [first, refusal, rest] = shim.shown().split("\n");
    expect([first, JSON.parse(refusal!).id, rest]).toEqual(['{"half":1}', 5, ""]);
    expect(shim.received()).toBe('{"jsonrpc":"2.0","method":"after"}\n');
  },
);
