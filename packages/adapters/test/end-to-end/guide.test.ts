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
  const command = compilable(here.path, { ...files, "agent.ts": AGENT });
  let said = "";
  try {
    execFileSync(process.execPath, command, { encoding: "utf8" });
  } catch (error) {
    said = String((error as { stdout?: string }).stdout ?? error);
  }
  expect(said).toBe("");
});
