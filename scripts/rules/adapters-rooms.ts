import type { PackageRooms } from "./rooms.ts";

/** The rooms of the adapters. One framework never imports another: what two of them need is below both. */
export const ADAPTERS_ROOMS: PackageRooms = {
  sources: "packages/adapters/src/",
  base: ["background-fetch.ts", "hand-over.ts", "tool-rules.ts", "unwritten-outcomes.ts"],
  rooms: {
    // What a message of a framework is, without the framework.
    "dialects/": [],
    // A session that is written by change.
    "state-journal/": [],
    "ai-sdk/": [],
    "ai-sdk/chat/": ["ai-sdk/"],
    "ai-sdk/index.ts": ["ai-sdk/", "ai-sdk/chat/"],
    "claude-agent/": ["state-journal/"],
    "langchain/": ["dialects/"],
    "langgraph/": ["state-journal/"],
    "openai-agents/": ["dialects/"],
  },
};
