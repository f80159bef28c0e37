import type { Agent } from "./agent.ts";
import { claudeCode } from "./claude-code.ts";
import { cline } from "./cline.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { dsh } from "./dsh.ts";
import { gemini, geminiCore } from "./gemini.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";

/** Older and newer versions, of which one story is enough. */
const OTHERS: readonly Agent[] = [
  { ...claudeCode, name: "claude-code-2.1.197", stories: ["work"] },
  { ...codex, name: "codex-0.166", stories: ["work"] },
  { ...pi, name: "pi-0.87", stories: ["work", "compacted"] },
];

/** Every program of the laboratory. */
export const AGENTS: Readonly<Record<string, Agent>> = Object.fromEntries(
  [claudeCode, cline, codex, copilot, dsh, gemini, geminiCore, opencode, pi, ...OTHERS].map((agent) => [
    agent.name,
    agent,
  ]),
);
