/** What the address of a store names: for tools that need to know it without opening the store, or loading it. */
export { parseAddress, type StoreAddress } from "./stores/address.ts";
