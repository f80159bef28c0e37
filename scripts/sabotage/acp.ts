import type { Sabotage } from "./list.ts";

const durable = "packages/acp/src/durable";
const DURABLE = ["packages/acp/test/unit/durable/durable.test"];
const editors = "packages/cli/src/editors";
const EDITORS = ["packages/cli/test/unit/editors/agent-entries.test"];

/** Ways to break the promises of durable agents, and of changes in the settings of editors. */
export const acpSabotages: readonly Sabotage[] = [
  {
    name: "durable: a prompt reaches the agent before it is recorded",
    room: durable,
    file: "connection.ts",
    find: "      await session.prompt(params);",
    replace: "      void session.prompt(params).catch(() => {});",
    look: DURABLE,
  },
  {
    name: "durable: an update reaches the client before it is recorded",
    room: durable,
    file: "connection.ts",
    find: "        await this.#record(session, message);",
    replace: "        void this.#record(session, message).catch(() => {});",
    look: DURABLE,
  },
  {
    name: "durable: what the agent asks of its client is recorded with its content",
    room: durable,
    file: "connection.ts",
    find: 'else await session.beside("agent", method, null);',
    replace: 'else await session.beside("agent", method, params);',
    look: DURABLE,
  },
  {
    name: "durable: a call that was approved is said not to have run",
    room: "packages/acp/src/record",
    file: "unapproved-calls.ts",
    find: "if (call === null || !isGiven(options, outcome))",
    replace: "if (call === null || isGiven(options, outcome))",
    look: DURABLE,
  },
  {
    name: "durable: the agent is not stopped when nothing can be recorded any more",
    room: durable,
    file: "connection.ts",
    find: '    this.#give({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: agentSession } });\n    // Before',
    replace: "    // Before",
    look: DURABLE,
  },
  {
    name: "editors: an agent is wrapped twice",
    room: editors,
    file: "agent-entries.ts",
    find: 'if (entry.wrap !== null) return "it is wrapped already";',
    replace: "",
    look: EDITORS,
  },
  {
    name: "editors: settings that another program has changed are overwritten",
    room: editors,
    file: "settings-file.ts",
    find: "if (readSettings(path).text !== before) throw",
    replace: "if (readSettings(path).text === before && before === text) throw",
    look: EDITORS,
  },
];
