import { HoldfastError } from "../errors.ts";

export function dialectUnknown(given: unknown): HoldfastError {
  const name = String(given).slice(0, 80);
  const message =
    `Unknown dialect ${JSON.stringify(name)}. Nothing was created or opened. ` +
    "Name a built-in dialect, or pass the dialect itself.";
  return new HoldfastError("DIALECT_UNKNOWN", message, { dialect: name });
}

export function otherDialect(recorded: string, named: string): HoldfastError {
  const message =
    `The session uses the dialect ${JSON.stringify(recorded.slice(0, 80))}, not ${JSON.stringify(named)}. ` +
    "Nothing was touched. Name the session's own dialect, or none.";
  return new HoldfastError("DIALECT_UNKNOWN", message, { dialect: recorded, named });
}
