/** The editor's side of a wrapped agent: small, because an editor starts one for each agent. */
export { agentKey, SOCKET_NAME_CHARS, SOCKET_PATH_BYTES_MAX } from "./layout/place.ts";
export { Shim, type ShimEnd, type ShimOptions } from "./layout/shim.ts";
