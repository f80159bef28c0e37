import { outcomeUnknown } from "../tools/results/outcome-words.ts";

/** Results for the model, in the words that the library uses for calls that were interrupted. */

export function notRun(server: string, why: string): Error {
  return new Error(
    `Not run: the MCP server "${server}" is not available (${why}). The call never started: it is safe to run it.`,
  );
}

export function noAnswer(server: string, timeoutMs: number): Error {
  return outcomeUnknown(`the MCP server "${server}" gave no answer for ${timeoutMs / 1000} s`);
}
