import { HoldfastError } from "./errors.ts";

/** Loads a part of the library that is not needed at once. Throws LIBRARY_REPLACED if its file is gone. */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== "ERR_MODULE_NOT_FOUND") throw error;
    const message =
      "A part of the library is gone: its files were replaced while this program was running, probably by an upgrade. " +
      "Nothing was touched, and nothing that was recorded is lost. Restart the program.";
    throw new HoldfastError("LIBRARY_REPLACED", message, {}, error);
  }
}
