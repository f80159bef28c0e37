/**
 * Every type of the contract, also the parts that the public entry does not name, and what the page and the command
 * decide and say as the server does. Only for the packages of this repository: it changes without notice.
 */

export { callStateWords } from "./call-words.ts";
export type * from "./editor.ts";
export type * from "./host.ts";
export type * from "./item.ts";
export type * from "./served-host.ts";
export { sessionStateOf } from "./session-state.ts";
