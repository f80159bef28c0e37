import type { Agent } from "./agent.ts";
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { gemini, geminiCore } from "./gemini.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";

/** Every program of the laboratory. */
export const AGENTS: Readonly<Record<string, Agent>> = Object.fromEntries(
  [claudeCode, codex, copilot, gemini, geminiCore, opencode, pi].map((agent) => [agent.name, agent]),
);
