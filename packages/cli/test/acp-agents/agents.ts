import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AcpProgram, acpProgram } from "../../../../scripts/acp-agents.ts";
import type { Home } from "../command.ts";
import { ChatServer, type Script } from "./chat-server.ts";

/** Prompts that each agent here answers in its own way. The SDK's example has one turn, whatever it is asked. */
export const PROMPTS = {
  /** A complete answer. */
  talk: "What is a heron?",
  /** An answer that is long enough to be killed in it. */
  stream: "Tell me a long story.",
  /** A call that needs permission, and then runs until it is killed. */
  work: "Run the long command.",
  /** A call that needs permission, and then ends. */
  act: "Run the short command.",
  /** For the session that was loaded. */
  after: "And what do egrets eat?",
} as const;
export type PromptName = keyof typeof PROMPTS;

/** An agent that nobody here wrote, set up in a home of its own. */
export interface Installed extends AsyncDisposable {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Before the agent's next start: the prompts that this process will get. */
  expect(prompts: readonly PromptName[]): void;
}

export interface Agent {
  readonly name: "example" | "gemini" | "opencode";
  readonly program: AcpProgram;
  /** It loads sessions by itself. */
  readonly canLoad: boolean;
  /** The option that allows a call. */
  readonly allow: string;
  /** What it says to each prompt, as far as the drill counts on it. */
  readonly says: Readonly<Record<"talk" | "after", string>>;
  install(home: Home): Promise<Installed>;
}

/** The command that stands for a tool at work: it leaves a sign, and runs for longer than any test. */
export const signOf = (home: Home): string => join(home.work, "tool-runs");
const longCommand = (home: Home): string => `touch '${signOf(home)}'; sleep 1000`;
const SHORT_COMMAND = "echo three egrets";
const HERON = "A heron is a wading bird with long legs.";
const EGRETS = "Egrets eat fish and frogs.";

/** Nothing here may reach the network: a request that leaves the machine fails at once. */
const OFFLINE = {
  ...{ HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" },
  ...{ http_proxy: "http://127.0.0.1:9", https_proxy: "http://127.0.0.1:9" },
  ...{ NO_PROXY: "127.0.0.1,localhost", no_proxy: "127.0.0.1,localhost" },
};

/** Has one turn of five seconds: text, a call that needs no permission, text, a call that does, text. Cannot load. */
const example: Agent = {
  ...{ name: "example", program: acpProgram("example"), canLoad: false, allow: "allow" },
  says: { talk: "I'll help you with that.", after: "I'll help you with that." },
  install: async () => ({
    command: acpProgram("example").command,
    env: OFFLINE,
    expect: () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }),
};

/** Reads its model's answers from a file, one by one, from the beginning at each start. */
const gemini: Agent = {
  ...{ name: "gemini", program: acpProgram("gemini"), canLoad: true, allow: "proceed_once" },
  says: { talk: HERON, after: EGRETS },
  install: async (home) => {
    const [own, answers] = [join(home.path, "gemini"), join(home.path, "answers.jsonl")];
    mkdirSync(join(own, ".gemini"), { recursive: true });
    mkdirSync(join(home.path, "tmp"), { recursive: true });
    const settings = {
      security: { auth: { selectedType: "gemini-api-key" } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
    };
    writeFileSync(join(own, ".gemini/settings.json"), JSON.stringify(settings));
    const args = ["--acp", "-m", "gemini-2.5-flash", "--skip-trust", "--fake-responses", answers];
    return {
      command: [...acpProgram("gemini").command, ...args],
      env: { ...OFFLINE, GEMINI_API_KEY: "none", GEMINI_CLI_HOME: own, TMPDIR: join(home.path, "tmp") },
      expect: (prompts) => {
        const lines = prompts.flatMap((prompt) => geminiAnswers(prompt, home)).map((line) => JSON.stringify(line));
        writeFileSync(answers, `${lines.join("\n")}\n`);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
};

/** One answer of the model for each request that the prompt leads to. */
function geminiAnswers(prompt: PromptName, home: Home): object[] {
  const answer = (...parts: readonly object[]): object => ({
    method: "generateContentStream",
    response: parts.map((part, at) => ({
      candidates: [
        { content: { role: "model", parts: [part] }, ...(at === parts.length - 1 ? { finishReason: "STOP" } : {}) },
      ],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
    })),
  });
  const run = (command: string): object => ({ functionCall: { name: "run_shell_command", args: { command } } });
  switch (prompt) {
    case "talk":
      return [answer({ text: "A heron is a wading bird " }, { text: "with long legs." })];
    case "stream":
      return [answer(...Array.from({ length: 20_000 }, (_, at) => ({ text: `Word ${at}. ` })))];
    case "work":
      return [answer(run(longCommand(home))), answer({ text: "The command has ended." })];
    case "act":
      return [answer({ text: "I run it. " }, run(SHORT_COMMAND)), answer({ text: "The command has ended." })];
    case "after":
      return [answer({ text: EGRETS })];
  }
}

/** Asks a model on the loopback interface. */
const opencode: Agent = {
  ...{ name: "opencode", program: acpProgram("opencode"), canLoad: true, allow: "once" },
  says: { talk: HERON, after: EGRETS },
  install: async (home) => {
    const server = await ChatServer.start((prompt) => chatScript(prompt, home));
    const config = {
      ...{ autoupdate: false, share: "disabled", model: "fake/fake", small_model: "fake/fake" },
      provider: {
        fake: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: server.address, apiKey: "none" },
          models: { fake: { name: "fake", tool_call: true, limit: { context: 100_000, output: 10_000 } } },
        },
      },
      permission: { bash: "ask" },
    };
    const path = join(home.path, "opencode.json");
    writeFileSync(path, JSON.stringify(config));
    const places = Object.fromEntries(
      ["DATA", "CONFIG", "CACHE", "STATE"].map((name) => [`XDG_${name}_HOME`, join(home.path, "opencode", name)]),
    );
    const quiet = { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" };
    return {
      command: [...acpProgram("opencode").command, "acp"],
      env: { ...OFFLINE, ...places, ...quiet, OPENCODE_CONFIG: path, OPENCODE_DISABLE_LSP_DOWNLOAD: "1" },
      expect: () => undefined,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

function chatScript(prompt: string, home: Home): Script {
  // A prompt may follow the transcript of what was said before.
  const last = Object.entries(PROMPTS)
    .map(([name, text]) => ({ name: name as PromptName, at: prompt.lastIndexOf(text) }))
    .toSorted((a, b) => b.at - a.at)[0]!.name;
  switch (last) {
    case "talk":
      return { answer: HERON };
    case "stream":
      return { endless: "another word " };
    case "work":
      return { command: longCommand(home) };
    case "act":
      return { command: SHORT_COMMAND };
    case "after":
      return { answer: EGRETS };
  }
}

export const AGENTS: readonly Agent[] = [example, gemini, opencode];
