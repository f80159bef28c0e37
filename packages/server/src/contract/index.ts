/** What a screen, a script or a server may know of an agent: types alone. */

export type * from "./editor.ts";
export type * from "./host.ts";
export type * from "./item.ts";
export type * from "./served-host.ts";
