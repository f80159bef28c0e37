/** A client of the server for TypeScript, and the same `Host` as an agent in your own process. */

export { type CallInput, type CallOutput, type ClientOptions, HoldfastClient, ServerError } from "./client.ts";
export type { ServerEvent } from "./event-source.ts";
export { RemoteHost } from "./remote-host.ts";
