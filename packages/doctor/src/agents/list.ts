import type { Agent } from "../contract/agent.ts";
import { claudeCode } from "./claude-code/index.ts";
import { cline } from "./cline/index.ts";
import { codex } from "./codex/index.ts";
import { copilot } from "./copilot/index.ts";
import { dsh } from "./dsh/index.ts";
import { gemini } from "./gemini/index.ts";
import { goose } from "./goose/index.ts";
import { opencode } from "./opencode/index.ts";
import { pi } from "./pi/index.ts";
import { simple } from "./simple/index.ts";
import { zot } from "./zot/index.ts";

/** Every agent whose sessions can be read. */
export const AGENTS: readonly Agent[] = [
  claudeCode,
  cline,
  codex,
  copilot,
  dsh,
  gemini,
  goose,
  opencode,
  pi,
  simple,
  zot,
];
