/** What a store still has after this: a killed process, or a power cut too. */
export type Survives = "kill" | "power";

/** One of the ways to store sessions that are compared. */
export interface Contender {
  readonly key: string;
  readonly name: string;
  readonly survives: Survives;
  /** What is installed from npm for it, pinned. Dependencies of these are pinned by the cache's lock file only. */
  readonly packages: Readonly<Record<string, string>>;
  /** Versions of what those depend on, where the one that they ask for cannot be used. */
  readonly overrides?: Readonly<Record<string, string>>;
  /** How it is driven, in words. */
  readonly driven: string;
  /** Reading does not depend on durability: another contender's figures stand for this one. */
  readonly readsLike?: string;
  /** Why it has no figure for a list. */
  readonly noList?: string;
}

export const roster: readonly Contender[] = [
  {
    key: "holdfast",
    name: "Holdfast, process",
    survives: "kill",
    packages: {},
    driven: '`startTurn`, nine `turn.append`, `turn.end`, each awaited, with `durability: "process"`',
  },
  {
    key: "pi",
    name: "pi",
    survives: "kill",
    // 1.0.3, 1.3.0, 1.4.0 and 1.5.0 need packages that cannot be had: this is the newest that npm can install.
    packages: { "@earendil-works/pi-coding-agent": "0.87.1" },
    driven: "`SessionManager.appendMessage`; `SessionManager.open` and `buildSessionContext`; `SessionManager.list`",
  },
  {
    key: "sqlite-normal",
    name: "SQLite, a row per message, NORMAL",
    survives: "kill",
    packages: {},
    driven: "our own 20 lines on `node:sqlite`: WAL, one `INSERT` per message, no transaction around them",
  },
  {
    key: "gemini",
    name: "Gemini CLI core",
    survives: "kill",
    packages: { "@google/gemini-cli-core": "0.61.0" },
    driven:
      "`ChatRecordingService.recordMessage`, a tool's result with its call by `recordToolCalls`, as the CLI does; " +
      "`loadConversationRecord`, for the list with `metadataOnly` over all files",
  },
  {
    key: "mastra",
    name: "Mastra with libsql",
    survives: "kill",
    packages: { "@mastra/core": "1.71.0", "@mastra/libsql": "1.23.1", "@mastra/memory": "1.31.0" },
    driven:
      "`Memory.saveMessages` with one message; `recall` of the whole thread (Mastra's own agents load the last few " +
      "messages only); `listThreads`",
  },
  {
    key: "whole-file",
    name: "Whole file per message",
    survives: "kill",
    packages: {},
    driven: "our own 10 lines: all messages as one JSON file, written to a second file and renamed",
  },
  {
    key: "langgraph",
    name: "LangGraph with SqliteSaver",
    survives: "kill",
    packages: {
      "@langchain/core": "1.2.13",
      "@langchain/langgraph": "1.4.18",
      "@langchain/langgraph-checkpoint": "1.1.5",
      "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
    },
    // better-sqlite3 12, which it asks for, aborts on Node 24.19 and newer when a statement is collected.
    // A newer SDK may need packages that a registry lacks, and npm then looks for another solution for a long time.
    overrides: { "better-sqlite3": "13.0.3", "@langchain/langgraph-sdk": "1.12.0" },
    driven:
      "a graph of a model and a tools node that add one message each, one `invoke` per turn, default durability; between " +
      "ages its thread grows by one `updateState`; `getState`; " +
      "better-sqlite3 13 in the place of 12, which aborts on Node 24",
    noList: "it has no list of threads",
  },
  {
    key: "langgraph-holdfast",
    name: "LangGraph with HoldfastSaver",
    survives: "kill",
    packages: {},
    driven:
      'as LangGraph with SqliteSaver, with `HoldfastSaver` in a folder and `durability: "process"`; `listThreads`',
  },
  {
    key: "holdfast-power",
    name: "Holdfast, power (the default)",
    survives: "power",
    packages: {},
    driven: "as Holdfast, process, with the default durability",
    readsLike: "holdfast",
  },
  {
    key: "sqlite-full",
    name: "SQLite, a row per message, FULL",
    survives: "power",
    packages: {},
    driven: "as SQLite NORMAL, with `synchronous=FULL`",
    readsLike: "sqlite-normal",
  },
];

export function isOurs(contender: { readonly key: string }): boolean {
  return contender.key.startsWith("holdfast");
}
