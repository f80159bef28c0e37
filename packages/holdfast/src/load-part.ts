import { descriptorFailure } from "./disk/descriptors.ts";
import { diskFailure, isGeneral } from "./disk/failure.ts";
import { errnoOf, HoldfastError } from "./errors.ts";

/**
 * Loads a part of the library that is not needed at once. Throws STORE_IO if no file can be opened at the moment
 * (EMFILE): call it again later. Throws LIBRARY_REPLACED, or what `missing` returns, if the file is gone.
 */
export async function loadPart<T>(load: () => Promise<T>, missing: (error: unknown) => unknown = replaced): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // Bun and Deno say ERR_MODULE_NOT_FOUND for this too. Deno keeps the failure; Node and Bun load the file next time.
    const momentary = isGeneral(error) ? error : descriptorFailure();
    if (momentary !== null)
      throw diskFailure(momentary, "load a part of the library", import.meta.filename, "Nothing was touched.");
    throw errnoOf(error) === "ERR_MODULE_NOT_FOUND" ? missing(error) : error;
  }
}

function replaced(cause: unknown): HoldfastError {
  const message =
    "A part of the library is gone: its files were replaced while this program was running, probably by an upgrade. " +
    "Nothing was touched, and nothing that was recorded is lost. Restart the program.";
  return new HoldfastError("LIBRARY_REPLACED", message, {}, cause);
}
