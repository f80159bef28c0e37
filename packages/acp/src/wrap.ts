/** What runs a wrapped agent. Apart from the rest, so that it starts without the SDK. */

export { Drive, type DriveOptions } from "./drive/drive.ts";
export { RequestError } from "./drive/line-client.ts";
export { runDirect } from "./layout/direct.ts";
export { retire } from "./layout/place.ts";
export { Supervisor, type SupervisorOptions } from "./layout/supervisor.ts";
export { AGENT, agentOf, Library, SESSION } from "./record/library.ts";
export type { Params } from "./record/message.ts";
export type { CallEvidence } from "./record/noted-calls.ts";
export { UNAPPROVED, unapprovedFacts } from "./record/unapproved-calls.ts";
export type { Ended } from "./wrap/agent-process.ts";
export type { Permit } from "./wrap/agent-to-editor.ts";
export type { Client, ClientOutput } from "./wrap/client.ts";
export { type WrapOptions, WrappedAgent } from "./wrap/wrapped-agent.ts";
