import type { LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";

/**
 * What is known about a call. `unknown`: it may have taken effect. `not-run`: it certainly did not, and may be retried.
 * `forgotten`: it succeeded, but its result is no longer in the conversation.
 */
export interface Outcome {
  readonly kind: "done" | "failed" | "denied" | "not-run" | "unknown" | "forgotten";
  readonly text: string;
}

/** A call without a result: nothing is known about it. */
export const UNANSWERED: Outcome = { kind: "unknown", text: "" };

/** The words of Holdfast's repairs (view/model-words.ts): they occur only in results that are not in the journal. */
const NOT_RUN = /^Not run( yet)?: /;
const UNKNOWN =
  /^(Started, then .*: outcome unknown|Was running when .*may have taken effect|No result was recorded: .*This call may have run|Still running: there is no result)/s;
const DENIED = /^This call was not approved|^(Denied|Permission denied by)\b/;
/** The agent shortens old results when it requests a summary. */
const SHORTENED = /\n\[shortened\]$/;
/** The tool was stopped before it finished, and says so. */
const STOPPED = /^(The operation was aborted|This operation was aborted|Stopped\b|Aborted\b)/i;

export function outcomeOf(output: LanguageModelV4ToolResultOutput): Outcome {
  switch (output.type) {
    case "execution-denied":
      return { kind: "denied", text: output.reason ?? "" };
    case "error-text":
    case "error-json":
      return classify(textOf(output.value), "failed");
    case "text":
    case "json":
      return classify(textOf(output.value), "done");
    case "content":
      return classify(output.value.map((part) => (part.type === "text" ? part.text : "")).join("\n"), "done");
  }
}

function classify(text: string, otherwise: "done" | "failed"): Outcome {
  if (SHORTENED.test(text)) return { kind: "forgotten", text };
  // A successful result is the tool's own text, whatever it looks like: only errors can be repairs.
  if (otherwise === "done") return { kind: "done", text };
  if (NOT_RUN.test(text)) return { kind: "not-run", text };
  if (UNKNOWN.test(text) || STOPPED.test(text)) return { kind: "unknown", text };
  if (DENIED.test(text)) return { kind: "denied", text };
  return { kind: "failed", text };
}

/** A tool may return an object with its text in one of these members. */
const TEXTS = ["content", "text", "output", "stdout", "result"];

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) {
    for (const member of TEXTS) {
      const text = (value as Record<string, unknown>)[member];
      if (typeof text === "string") return text;
    }
  }
  return JSON.stringify(value) ?? "";
}
