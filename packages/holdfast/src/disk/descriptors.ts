import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { errnoOf } from "../errors.ts";
import { isGeneral } from "./failure.ts";

/** The error if no file can be opened now (EMFILE, ENFILE), or null: SQLite and loaders of modules do not say. */
export function descriptorFailure(): unknown {
  try {
    closeSync(openSync(devNull, "r"));
    return null;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    // Under `node --permission`, this file may be forbidden.
    return isGeneral(error) ? error : null;
  }
}
