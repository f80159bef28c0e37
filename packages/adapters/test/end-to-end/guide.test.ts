import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { NEXT_SERVER } from "../chat-server.ts";
import { blocks, compilable, guideFile } from "./guide.ts";

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
declare const payments: {
  charge(cents: number, options: { readonly idempotencyKey: string }): Promise<object>;
  find(key: string | null): Promise<object | null>;
};
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
  expect(Object.keys(files)).toEqual(["block-0.ts", "block-1.ts", "block-2.ts", "block-3.ts", "block-4.ts"]);
  expect(complaints(compilable(here.path, files))).toBe("");
});

/** What the last block of the guide to chats takes for granted. */
const CHATS = `
import { durableChat } from "@holdfast/adapters/ai-sdk";
import type { Store } from "holdfast";
declare const store: Store;
declare const userOf: (request: Request) => Promise<string>;
declare const ownsChat: (user: string, chat: string) => Promise<boolean>;
`;

test("the blocks of the guide to chats in the browser compile", () => {
  using here = place();
  const all = blocks("browser-chats");
  const files = Object.fromEntries(
    all.map(({ file, code }, n) => [
      file ?? `block-${n}.ts`,
      n === all.length - 1 ? `${READERS}${CHATS}${code}\nexport {};\n` : code,
    ]),
  );
  const servers = ["chat.ts", "route.ts", "express.ts", "server.ts"];
  expect(Object.keys(files)).toEqual([...servers, "page.tsx", "block-5.ts", "deploy.ts", "go-on.ts", "block-8.ts"]);
  expect(complaints(compilable(here.path, { ...files, "agent.ts": AGENT, "next.ts": NEXT_SERVER }))).toBe("");
});

test("the guide to chats counts the lines to adopt", () => {
  const of: Record<string, string[]> = {};
  for (const { file, code } of blocks("browser-chats")) {
    const lines = code.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("//"));
    of[file ?? ""] = lines.filter((line) => !line.includes("// yours"));
  }
  const chatLines = (file: string): string[] => of[file]!.filter((line) => /\bchat\b/.test(line));
  expect([of["chat.ts"], of["route.ts"], of["page.tsx"]].map((lines) => lines!.length)).toEqual([4, 2, 4]);
  expect([chatLines("express.ts"), chatLines("server.ts")].map((lines) => lines.length)).toEqual([2, 2]);
  expect(readFileSync(guideFile("browser-chats"), "utf8")).toContain("**10 lines to adopt**");
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

const APPROVED = `
import type { Durable } from "@holdfast/adapters/langchain";
import { Command } from "@langchain/langgraph";
import type { ReactAgent } from "langchain";
declare const agent: Durable;
declare const app: ReactAgent;
declare const thread: string;
`;

test("the blocks of the guide to LangGraph and LangChain compile and run", () => {
  using here = place();
  const [saver, threads, agent, approval] = blocks("langgraph").map(({ code }) => code);
  const files = {
    "saver.ts": `${GRAPH}${saver}${threads}console.log(threads.map(({ threadId }) => threadId), next);\nexport {};\n`,
    "agent.ts": `${CREATED}${agent}console.log(session.messages.map(({ text }) => text));\nawait store.close();\nexport {};\n`,
    "approval.ts": `${APPROVED}${approval}export {};\n`,
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
