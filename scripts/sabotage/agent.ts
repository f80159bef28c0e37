import type { Sabotage } from "./list.ts";

const ADAPTER = ["packages/adapters/test/unit"];
const AGENT = ["packages/cli/test/unit/host-", "packages/cli/test/unit/agent-"];
const TOOLS = ["packages/cli/test/unit/tools-", "packages/cli/test/unit/permission.test"];

const adapters = "packages/adapters/src/ai-sdk";
const cli = "packages/cli/src";

/** Ways to break the promises of the adapter and of the reference agent. */
export const agentSabotages: readonly Sabotage[] = [
  {
    name: "adapter: a tool runs before its start is recorded",
    room: adapters,
    file: "tools.ts",
    find: "await storing(gate, turn.toolStarted(toolCallId, { replay }));",
    replace: "void storing(gate, turn.toolStarted(toolCallId, { replay })).catch(() => {});",
    look: ADAPTER,
  },
  {
    name: "adapter: an answer is recorded beside its tools, not before them",
    room: adapters,
    file: "wrap.ts",
    find: "await run.answered(event as Answer);",
    replace: "void run.answered(event as Answer);",
    look: ADAPTER,
  },
  {
    name: "adapter: the run goes on when the store has failed",
    room: adapters,
    file: "run.ts",
    find: "    this.#failure ??= { error };\n    this.#stop.abort(error);",
    replace: "    void error;",
    look: ADAPTER,
  },
  {
    name: "adapter: what Holdfast refuses inside a tool is told to the model",
    room: adapters,
    file: "tools.ts",
    find: "const fault = signal.aborted ? null : errorKind(error);",
    replace: 'const fault: string | null = signal.aborted ? null : "refusal";',
    look: ADAPTER,
  },
  {
    name: "adapter: a turn that has its answer is asked again",
    room: adapters,
    file: "resume.ts",
    find: "if (interruption?.answered) {",
    replace: "if (interruption === null) {",
    look: ADAPTER,
  },
  {
    name: "agent: a question that was open at the end of the last process is not asked again",
    room: cli,
    file: "host/chat.ts",
    find: "if (open.length > 0) this.#askAgain(open);",
    replace: "void open;",
    look: AGENT,
  },
  {
    name: "agent: a prompt takes the place of a turn that waits for an answer",
    room: cli,
    file: "host/chat.ts",
    find: "return !this.#shift.over && interruption !== null && this.state.interruption !== null && isWaiting(interruption);",
    replace: "return interruption === null && isWaiting(interruption!);",
    look: AGENT,
  },
  {
    name: "agent: a tool whose outcome is unknown is run again",
    room: cli,
    file: "agent/reopened.ts",
    find: 'return call.replay === "safe" || known.isResumable ? "keep" : "close";',
    replace: 'return "keep";',
    look: AGENT,
  },
  {
    name: "agent: what no rule allows any more is run when the turn is taken up",
    room: cli,
    file: "agent/reopened.ts",
    find: '  if (!known.isAllowed) return "close";\n',
    replace: "",
    look: AGENT,
  },
  {
    name: "agent: what has to be asked for is done",
    room: cli,
    file: "agent/equipment.ts",
    find: 'if (decision.verdict === "ask" && canAsk) return { type: "user-approval" };',
    replace: 'if (decision.verdict === "ask" && canAsk) return { type: "not-applicable" };',
    look: AGENT,
  },
  {
    name: "agent: a new prompt overtakes those that are queued",
    room: cli,
    file: "host/chat.ts",
    find: "this.#session.queue.length > 0 || this.#isUndecided()) {",
    replace: "this.#isUndecided()) {",
    look: AGENT,
  },
  {
    name: "tools: the agent's own store is searched like any folder",
    room: cli,
    file: "tools/walk.ts",
    find: "if ((own && isOwnEntry(own, path, child.isDirectory())) || passOver(path)) {",
    replace: "if (passOver(path)) {",
    look: TOOLS,
  },
  {
    name: "tools: a file of the agent's own store is read under another name",
    room: cli,
    file: "tools/own-store.ts",
    find: "return found !== null && new OwnFiles(own).has(found);",
    replace: "return found === null;",
    look: TOOLS,
  },
  {
    name: "tools: a command begins before its process is recorded",
    room: cli,
    file: "tools/shell.ts",
    find: "await context.process(call, started);",
    replace: "void context.process(call, started).catch(() => {});",
    look: TOOLS,
  },
  {
    name: "terminal: escape sequences reach the terminal",
    room: cli,
    file: "terminal/plain.ts",
    find: '    .replace(ESCAPES, "")\n',
    replace: "",
    look: ["packages/cli/test/unit/terminal"],
  },
];
