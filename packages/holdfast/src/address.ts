/**
 * Addresses of stores, for tools that need to read or show one without opening the store or loading it, and the schemes
 * by which addresses name stores of other packages.
 */
export { parseAddress, type StoreAddress } from "./stores/address.ts";
export { type OpenByAddress, registerScheme } from "./stores/schemes.ts";
export { shownAddress } from "./stores/shown-address.ts";
