import type { LanguageModelV4 } from "@ai-sdk/provider";
import { APICallError, wrapLanguageModel } from "ai";

/** How often to retry a request that failed before anything was streamed. */
export const RETRIES_MAX = 3;

/**
 * Wraps the model to announce each retry: the SDK waits for seconds in between, silently. If the connection is refused,
 * retrying is pointless, so that fails at once.
 */
export function withRetryNotices(model: LanguageModelV4, again: (reason: string) => void): LanguageModelV4 {
  let failures = 0;
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: "v4",
      wrapStream: async ({ doStream }) => {
        try {
          return await doStream();
        } catch (error) {
          if (!APICallError.isInstance(error) || !error.isRetryable) throw error;
          if (isRefused(error)) throw final(error);
          failures++;
          if (failures <= RETRIES_MAX) again(error.statusCode ? `status ${error.statusCode}` : error.message);
          throw error;
        }
      },
    },
  });
}

function isRefused(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > 5) return false;
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  if (code === "ECONNREFUSED" || isRefused(cause, depth + 1)) return true;
  return Array.isArray(errors) && errors.some((one) => isRefused(one, depth + 1));
}

function final(error: APICallError): APICallError {
  const { message, url, requestBodyValues } = error;
  return new APICallError({ message, url, requestBodyValues, cause: error, isRetryable: false });
}
