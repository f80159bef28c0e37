import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Dialect, Outcome, Part } from "../../../../src/dialects/dialect.ts";
import { type DialectName, dialects, partsOf } from "../../../../src/dialects/index.ts";
import { holds, seedOf } from "../../../seed.ts";
import { frozen, oddHappenings, spoken } from "../dialect-conversations.ts";
import { nonsense } from "../dialect-nonsense.ts";
import { voices } from "../dialect-voices.ts";

const seed = seedOf(import.meta.url, "unit");

const only = <T extends Part["type"]>(parts: readonly Part[], type: T) =>
  parts.filter((part): part is Extract<Part, { type: T }> => part.type === type);

/** A decision about an MCP call answers it, and is shown as what it is. */
const isDecision = (message: unknown): boolean =>
  (message as { type?: unknown } | null | undefined)?.type === "mcp_approval_response";

function agrees(message: unknown, dialect: Dialect<unknown>): Part[] {
  const parts = partsOf(message, dialect);
  expect(only(parts, "call").map(({ type: _, ...call }) => call)).toEqual(dialect.calls(message));
  const decided = only(parts, "approval").map(({ approval, approved }) => ({ approval, approved }));
  if (isDecision(message) && dialect.name === "openai-responses") expect(decided.length).toBe(1);
  else {
    const results = only(parts, "result").map(({ call }) => call);
    expect(results).toEqual(dialect.results(message).map(({ call }) => call));
    expect(decided).toEqual(dialect.approvals?.(message) ?? []);
  }
  for (const part of [...only(parts, "text"), ...only(parts, "reasoning")]) expect(part.text).not.toBe("");
  for (const { text, files } of only(parts, "result"))
    expect([typeof text, Array.isArray(files)]).toEqual(["string", true]);
  for (const { file } of only(parts, "file")) expect(file.mediaType).not.toBe("");
  return parts;
}

describe.each(voices.map(({ dialect, ...rest }) => ({ name: dialect.name, voice: { dialect, ...rest } })))(
  "$name",
  ({ name, voice }) => {
    test("the parts of a message are its text, its calls and its results", () => {
      const property = fc.property(oddHappenings, (happened) => {
        for (const { message } of frozen(spoken(voice, happened))) {
          const parts = agrees(message, voice.dialect);
          const bare = (text: string): string => text.replaceAll("\n", "");
          const said = only(parts, "text").map(({ text }) => bare(text));
          expect(said.join("")).toBe(bare(voice.dialect.text(message)));
        }
      });
      holds(property, seed, 100);
    });

    test.each(["no", "Error: no", "Errors found: 3", "ErrorCode 7", "", "Error"])(
      "a result that says that the tool failed with %j is read as one",
      (words) => {
        const made = (outcome: Outcome) =>
          only(partsOf(voice.dialect.result({ id: "call_1", name: "read" }, outcome), voice.dialect), "result");
        expect(made({ error: new Error(words) })).toMatchObject([{ call: "call_1", failed: true }]);
        expect(made({ value: `${words} done` })[0]!.text).toBe(`${words} done`);
      },
    );

    test("a message that is nonsense has parts too, with every call and result that the dialect finds", () => {
      const property = fc.property(nonsense, (message) => void agrees(message, dialects[name as DialectName]));
      holds(property, seed, 500);
    });

    test("a dialect without parts shows its text, its calls, and results as they are", () => {
      const { parts: _, ...bare } = voice.dialect;
      const property = fc.property(oddHappenings, (happened) => {
        for (const { message } of spoken(voice, happened)) {
          const parts = agrees(message, bare);
          expect(only(parts, "text").map(({ text }) => text)).toEqual(
            [bare.text(message)].filter((text) => text !== ""),
          );
          for (const { text } of only(parts, "result")) expect(text).toBe(JSON.stringify(message));
        }
      });
      holds(property, seed, 50);
    });
  },
);

test("what drifted: a decision counts where the SDK reads it, and a call that is none hides no text", () => {
  const response = { type: "tool-approval-response", approvalId: "a", approved: true, reason: "fine" };
  expect(partsOf({ role: "tool", content: [response] }, dialects["ai-sdk"])).toEqual([
    { type: "approval", approval: "a", approved: true, reason: "fine" },
  ]);
  expect(partsOf({ role: "user", content: [response] }, dialects["ai-sdk"])).toEqual([]);
  const parts = [{ functionCall: "none", text: "hello" }, { functionCall: { id: "1", name: "read", args: {} } }];
  expect(partsOf({ role: "model", parts }, dialects.gemini)).toEqual([
    { type: "text", text: "hello" },
    { type: "call", id: "1", name: "read", input: {}, by: "agent" },
  ]);
  const audio = { type: "input_audio", input_audio: { data: "QUJD", format: "mp3" } };
  for (const name of ["openai-chat", "openai-responses"] as const) {
    expect(partsOf({ role: "user", content: [audio] }, dialects[name])).toEqual([
      { type: "file", file: { mediaType: "audio/mpeg", data: "QUJD", bytes: 3 } },
    ]);
  }
});

test("an address that is no text is no address: a member named toString does no harm", () => {
  const data = { type: "url", url: { toString: 1 } };
  const message = { role: "user", content: [{ type: "file", mediaType: "image/png", data }] };
  expect(partsOf(message, dialects["ai-sdk"])).toEqual([{ type: "file", file: { mediaType: "image/png" } }]);
  const linked = { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://a.example/b") } };
  expect(partsOf({ role: "user", content: [linked] }, dialects["ai-sdk"])).toEqual([
    { type: "file", file: { mediaType: "image/png", url: "https://a.example/b" } },
  ]);
});

test("anthropic: a document made of blocks, and a search result, keep their text and images", () => {
  const words = (text: string) => ({ type: "text", text });
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
  const content = [
    { type: "document", title: "notes", source: { type: "content", content: [words("one"), image, words("two")] } },
    { type: "document", source: { type: "content", content: "three" } },
    { type: "search_result", source: "https://a.example", title: "found", content: [words("four")] },
  ];
  const textFile = (text: string) => ({
    mediaType: "text/plain",
    data: Buffer.from(text).toString("base64"),
    bytes: text.length,
  });
  expect(
    partsOf({ role: "user", content }, dialects.anthropic).map((part) => part.type === "file" && part.file),
  ).toEqual([
    { ...textFile("one\ntwo"), name: "notes" },
    { mediaType: "image/png", data: "iVBORw0KGgo=", bytes: 8 },
    textFile("three"),
    { ...textFile("four"), name: "found" },
  ]);
});
