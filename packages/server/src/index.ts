/**
 * Sessions over HTTP: the server. `holdfast serve` is built on it; [the guide](guides/server.md) explains what it
 * promises.
 */

export type { KeptShare, ShareFile } from "./access/credentials.ts";
export type { RequestLine } from "./http/app.ts";
export { type RunningServer, type ServerLimits, type ServerOptions, startServer } from "./http/start-server.ts";
export { openApiDocument } from "./openapi/document.ts";
export { type EventName, events } from "./schemas/events.ts";
export { type OperationId, operations } from "./schemas/operations.ts";
export { type Problem, problem } from "./schemas/problem.ts";
