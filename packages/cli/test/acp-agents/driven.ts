import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AcpProgram, acpProgram } from "../../../../scripts/acp-agents.ts";
import { anthropic } from "../../../adapters/test/loopback/anthropic.ts";
import { gemini } from "../../../adapters/test/loopback/gemini.ts";
import { openaiResponses } from "../../../adapters/test/loopback/openai-responses.ts";
import {
  type Answer,
  type Body,
  type Loopback,
  loopback,
  type Speech,
} from "../../../adapters/test/loopback/server.ts";
import type { Home } from "../command.ts";

/** Agents that others wrote, with a model on the loopback interface that works through a task in steps. */
export interface DrivenAgent {
  readonly name: "codex" | "claude" | "gemini";
  readonly program: AcpProgram;
  readonly speech: Speech;
  /** The call that runs a command in a shell. */
  call(command: string): { readonly name: string; readonly input: unknown };
  /** Sets it up in a home. `origin`: where its model is. */
  install(
    home: Home,
    origin: string,
  ): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
}

export const STEPS = 5;
export const ledgerOf = (home: Home): string[] => {
  const path = join(home.work, "ledger");
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
};

/** A step takes a moment, and is recorded before and after. One that had begun is found, and not made again. */
const STEP = `#!/bin/sh
if grep -qx "begin $1" ledger 2>/dev/null; then echo "found $1" >> ledger; echo "step $1 had begun"; exit 0; fi
echo "begin $1" >> ledger
sleep 0.3
echo "end $1" >> ledger
echo "step $1 is done"
`;

/** The model looks at what is done, as one does that was told that something is unknown, and says what comes next. */
export async function startModel(home: Home, agent: DrivenAgent): Promise<Loopback> {
  writeFileSync(join(home.work, "step.sh"), STEP, { mode: 0o755 });
  let serial = 0;
  const answer = (body: Body): Answer => {
    const tools = (body["tools"] ?? []) as readonly unknown[];
    // A request for a title, or for something else beside the conversation.
    if (tools.length === 0) return { text: "A task" };
    const known = ledgerOf(home);
    const steps = Array.from({ length: STEPS }, (_, at) => at + 1);
    const next = steps.find((n) => !known.includes(`end ${n}`) && !known.includes(`found ${n}`));
    if (next === undefined) return { text: "All steps are done." };
    serial += 1;
    return { text: `Step ${next}. `, calls: [{ id: `call_${serial}`, ...agent.call(`sh ./step.sh ${next}`) }] };
  };
  const isGemini = agent.name === "gemini";
  const usage = { input_tokens: 10, output_tokens: 10 };
  const whole = ({ text = "" }: Answer, body: Body, id: string): Body => ({
    ...{ id: `msg_${id}`, type: "message", role: "assistant", model: body["model"] ?? "none", usage, input_tokens: 10 },
    ...{ content: [{ type: "text", text }], stop_reason: "end_turn", stop_sequence: null },
  });
  const speech: Speech = {
    ...agent.speech,
    judge: () => [],
    ...(isGemini ? {} : { whole: agent.speech.whole ?? whole }),
  };
  return loopback(speech, answer);
}

const OFFLINE = {
  ...{ HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" },
  ...{ http_proxy: "http://127.0.0.1:9", https_proxy: "http://127.0.0.1:9" },
  ...{ NO_PROXY: "127.0.0.1,localhost", no_proxy: "127.0.0.1,localhost" },
};

const codex: DrivenAgent = {
  ...{ name: "codex", program: acpProgram("codex"), speech: openaiResponses },
  call: (cmd) => ({ name: "exec_command", input: { cmd } }),
  install: (home, origin) => {
    const folder = join(home.path, "codex");
    mkdirSync(folder, { recursive: true });
    const config = `model = "gpt-5"
model_provider = "lab"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.lab]
name = "lab"
base_url = "${origin}/v1"
wire_api = "responses"
`;
    writeFileSync(join(folder, "config.toml"), config);
    return { args: [], env: { ...OFFLINE, CODEX_HOME: folder, CODEX_API_KEY: "none", OPENAI_API_KEY: "none" } };
  },
};

const claude: DrivenAgent = {
  ...{ name: "claude", program: acpProgram("claude"), speech: anthropic },
  call: (command) => ({ name: "Bash", input: { command, description: "Makes the step" } }),
  install: (home, origin) => {
    const folder = join(home.path, "claude");
    mkdirSync(folder, { recursive: true });
    const own = {
      ...{ ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: "none", CLAUDE_CONFIG_DIR: folder },
      ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", IS_SANDBOX: "1" },
    };
    return { args: [], env: { ...OFFLINE, ...own } };
  },
};

const geminiCli: DrivenAgent = {
  ...{ name: "gemini", program: acpProgram("gemini"), speech: gemini },
  call: (command) => ({ name: "run_shell_command", input: { command } }),
  install: (home, origin) => {
    const folder = join(home.path, "gemini");
    mkdirSync(join(folder, ".gemini"), { recursive: true });
    const settings = {
      security: { auth: { selectedType: "gemini-api-key" } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
    };
    writeFileSync(join(folder, ".gemini/settings.json"), JSON.stringify(settings));
    const own = { GEMINI_API_KEY: "none", GEMINI_CLI_HOME: folder, GOOGLE_GEMINI_BASE_URL: origin };
    return { args: ["--acp", "-m", "gemini-2.5-flash", "--skip-trust"], env: { ...OFFLINE, ...own } };
  },
};

export const DRIVEN_AGENTS: readonly DrivenAgent[] = [codex, claude, geminiCli];
