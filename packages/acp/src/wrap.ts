/** What runs a wrapped agent. Apart from the rest, so that it starts without the SDK. */
export { runDirect } from "./layout/direct.ts";
export { retire } from "./layout/place.ts";
export { Supervisor, type SupervisorOptions } from "./layout/supervisor.ts";
export { Library } from "./record/library.ts";
export type { CallEvidence } from "./record/noted-calls.ts";
export { UNAPPROVED, unapprovedFacts } from "./record/unapproved-calls.ts";
export type { Ended } from "./wrap/agent-process.ts";
export type { Client, ClientOutput } from "./wrap/client.ts";
export { type WrapOptions, WrappedAgent } from "./wrap/wrapped-agent.ts";
