import { parseAddress, type StoreAddress } from "holdfast/address";

/** Null if it is not an address: opening it reports what is wrong. */
export function readAddress(address: string): StoreAddress | null {
  try {
    return parseAddress(address);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "STORE_URL_INVALID") return null;
    throw error;
  }
}
