import type { Sabotage } from "./list.ts";

const wrap = "packages/acp/src/wrap";
const layout = "packages/acp/src/layout";
const record = "packages/acp/src/record";
const KILLS = ["packages/cli/test/end-to-end/wrap-kill.test"];
const SUPERVISOR = ["packages/cli/test/end-to-end/wrap-supervisor.test"];
const WRAP = ["packages/cli/test/end-to-end/wrap.test"];
const PARTS = ["packages/acp/test/unit"];
const AGENT = ["packages/acp/test/unit/wrap/wrapped-agent.test"];
const FINISHER = ["packages/acp/test/unit/wrap/turn-finisher.test"];
const RECORDER = ["packages/holdfast/test/unit/session/recorder.test"];

/** Ways to break the promises of `holdfast wrap`. */
export const wrapSabotages: readonly Sabotage[] = [
  {
    name: "wrap: a refused prompt uses up what the agent is told of the conversation",
    room: wrap,
    file: "editor-to-agent.ts",
    find: "    await session.prompt(message.params);\n    this.#opener.told(session);",
    replace: "    this.#opener.told(session);\n    await session.prompt(message.params);",
    look: WRAP,
  },
  {
    name: "wrap: a fork begins without its source's conversation",
    room: record,
    file: "library.ts",
    find: "await (source ? this.fork(source, id, cwd) : this.create(id, cwd));",
    replace: "await this.create(id, cwd);",
    look: WRAP,
  },
  {
    name: "wrap: an answer to an agent that has ended answers the next one",
    room: wrap,
    file: "restartable-agent.ts",
    find: "RunningAgent.start(command, !this.#hadAgent, stderr, onMark)",
    replace: "RunningAgent.start(command, true, stderr, onMark)",
    look: AGENT,
  },
  {
    name: "wrap: a session that cannot be recorded is passed on all the same",
    room: wrap,
    file: "agent-to-editor.ts",
    find: "      return this.#fail(agent, session, error);",
    replace: "      void error;",
    look: AGENT,
  },
  {
    name: "wrap: an agent that was started again has another mode than the editor shows",
    room: wrap,
    file: "session-opener.ts",
    find: "    await this.#chooseAgain(agent, session);",
    replace: "    void this.#chooseAgain;",
    look: AGENT,
  },
  {
    name: "wrap: a permission stays open when its editor is gone",
    room: wrap,
    file: "wrapped-agent.ts",
    find: "await this.#agentRequests.refuseAll(this.#agent);",
    replace: "return;",
    look: SUPERVISOR,
  },
  {
    name: "wrap: an agent that dies again and again is started for ever",
    room: wrap,
    file: "turn-finisher.ts",
    find: "if (attempts >= TRIES_MAX) {",
    replace: "if (attempts >= 30) {",
    look: FINISHER,
  },
  {
    name: "wrap: an agent whose session was taken over goes on",
    room: wrap,
    file: "agent-to-editor.ts",
    find: 'isHoldfastError(error, "LEASE_LOST")) void agent.process.end(0);',
    replace: 'isHoldfastError(error, "LEASE_LOST")) void 0;',
    look: FINISHER,
  },
  {
    name: "wrap: tools in sessions of their own outlive the agent",
    room: wrap,
    file: "process-family.ts",
    find: "one.pid === this.#pid || this.#sessions.has(sessionOf(one)) || this.#seen.has(keyOf(one)) || isMarked(one.pid);",
    replace: "one.pid === this.#pid;",
    look: KILLS,
  },
  {
    name: "wrap: what the agent says during a replay is shown twice, or not at all",
    room: wrap,
    file: "agent-to-editor.ts",
    find: "        while (this.#replaying) await this.#replaying;\n        this.#handling",
    replace: "        this.#handling",
    look: AGENT,
  },
  {
    name: "wrap: an outlet that waited keeps its listeners",
    room: wrap,
    file: "outlet.ts",
    find: 'stream.off("drain", done).off("close", done);',
    replace: "",
    look: PARTS,
  },
  {
    name: "wrap: the editor waits forever for what a dead supervisor had to answer",
    room: layout,
    file: "shim.ts",
    find: "for (const id of unanswered)",
    replace: "for (const id of unanswered.slice(0, 0))",
    look: KILLS,
  },
  {
    name: "wrap: a session loses its MCP servers when its supervisor dies",
    room: layout,
    file: "shim.ts",
    find: "opened: this.#opened.all",
    replace: "opened: []",
    look: SUPERVISOR,
  },
  {
    name: "wrap: the supervisor does not wait for the editor to come back",
    room: layout,
    file: "supervisor.ts",
    find: "const until = performance.now() + graceMs;",
    replace: "const until = performance.now() + 0 * graceMs;",
    look: SUPERVISOR,
  },
  {
    name: "wrap: a supervisor takes a second editor",
    room: layout,
    file: "supervisor.ts",
    find: 'if (this.#isEnding || this.#attached?.state === "here") {',
    replace: "if (this.#isEnding) {",
    look: SUPERVISOR,
  },
  {
    name: "recorder: a turn that its writer left open stays open",
    file: "session/recorder.ts",
    find: "await this.#append([...this.#leftOpen, {",
    replace: "await this.#append([{",
    look: RECORDER,
  },
];
