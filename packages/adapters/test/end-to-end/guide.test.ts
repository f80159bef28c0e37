import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { blocks, compilable } from "./guide.ts";

/**
 * What the blocks take for granted: the reader's model and tools, and from the second block on what the first one made.
 */
const READERS = `
import type { LanguageModel, ToolSet } from "ai";
declare const model: LanguageModel;
declare const tools: ToolSet;
`;
const MADE = `
import { createAgentUIStreamResponse, generateText, type ModelMessage, ToolLoopAgent } from "ai";
import { type Durable, uiMessages } from "@holdfast/adapters/ai-sdk";
import type { Session } from "holdfast";
declare const session: Session<ModelMessage>;
declare const agent: Durable;
`;
const AGENT = `
import type { LanguageModel, ToolSet } from "ai";
export declare const model: LanguageModel;
export declare const tools: ToolSet;
`;

test("the blocks of the guide compile", () => {
  using here = place();
  const files = Object.fromEntries(
    blocks().map(({ file, code }, n) => [
      file ?? `block-${n}.ts`,
      file === null ? `${READERS}${n === 0 ? "" : MADE}${code}\nexport {};\n` : code,
    ]),
  );
  expect(Object.keys(files)).toEqual([
    "block-0.ts",
    "block-1.ts",
    "block-2.ts",
    "chat.ts",
    "transport.ts",
    "block-5.ts",
  ]);
  expect(complaints(compilable(here.path, { ...files, "agent.ts": AGENT }))).toBe("");
});

/** What the compiler says. */
function complaints(command: readonly string[]): string {
  try {
    execFileSync(process.execPath, [...command], { encoding: "utf8" });
    return "";
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? error);
  }
}

/** A reader's graph, and a reader's agent. */
const GRAPH = `
import { AIMessage, HumanMessage as Human } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
const builder = new StateGraph(MessagesAnnotation)
  .addNode("answer", () => ({ messages: [new AIMessage("Hello.")] }))
  .addEdge(START, "answer");
const input = { messages: [new Human("Hi.")] };
`;
const CREATED = `
import { FakeListChatModel } from "@langchain/core/utils/testing";
const model = new FakeListChatModel({ responses: ["Hello."] });
const tools: never[] = [];
`;

test("the blocks of the guide to LangGraph and LangChain compile and run", () => {
  using here = place();
  const [saver, threads, agent] = blocks("langgraph").map(({ code }) => code);
  const files = {
    "saver.ts": `${GRAPH}${saver}${threads}console.log(threads.map(({ threadId }) => threadId), next);\nexport {};\n`,
    "agent.ts": `${CREATED}${agent}console.log(session.messages.map(({ text }) => text));\nawait store.close();\nexport {};\n`,
  };
  expect(complaints(compilable(here.path, files))).toBe("");
  const run = (file: string): string =>
    execFileSync(process.execPath, ["--conditions=holdfast-source", file], { cwd: here.path, encoding: "utf8" });
  expect(run("saver.ts")).toBe("[ '1' ] undefined\n");
  expect(run("agent.ts")).toBe("[ 'Go.', 'Hello.' ]\n");
});

test("the guide counts the lines to adopt", () => {
  const [saver, , agent] = blocks("langgraph").map(({ code }) => code.split("\n").filter((line) => line.trim() !== ""));
  // The call of the graph is the reader's own.
  expect(saver!.length - 1).toBe(3);
  expect(agent).toHaveLength(9);
});
