/**
 * Only for the packages of this repository, and their tests: it changes without notice, and docs/API.md leaves it out.
 */

export { serverCodes } from "./access/request-error.ts";
export { readEvents } from "./client/event-source.ts";
export { Connections } from "./http/connections.ts";
export { LIMITS } from "./http/start-server.ts";
