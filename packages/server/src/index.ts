/**
 * Sessions over HTTP: the server. `holdfast serve` is built on it; [the guide](guides/server.md) explains what it
 * promises.
 */

export type { AllowedNames } from "./access/check-request.ts";
export {
  type Caller,
  Credentials,
  type KeptShare,
  newToken,
  type ShareFile,
  sharesInMemory,
} from "./access/credentials.ts";
export { RequestError, type ServerCode, serverCodes } from "./access/request-error.ts";
export { TRIES_MAX } from "./hosting/finish-interrupted.ts";
export type { RequestLine } from "./http/app.ts";
export { Connections } from "./http/connections.ts";
export { PAGE_POLICY } from "./http/page-files.ts";
export {
  DEFAULT_PORT,
  GRACE_MS,
  LIMITS,
  type RunningServer,
  type ServerLimits,
  type ServerOptions,
  startServer,
} from "./http/start-server.ts";
export { openApiDocument } from "./openapi/document.ts";
export { type EventName, events } from "./schemas/events.ts";
export type { Operation } from "./schemas/operation.ts";
export { type OperationId, operations } from "./schemas/operations.ts";
export { type Problem, problem } from "./schemas/problem.ts";
