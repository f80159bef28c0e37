import type { ApprovalPart, Dialect, FileContent, Part, ResultPart } from "../dialect.ts";
import type { FoundCall, FoundResult } from "../order/open-calls.ts";

/** What a built-in dialect reads in a message. */
export type Reading = Required<Pick<Dialect<unknown>, "role" | "text" | "calls" | "results" | "parts">>;

export const text = (value: string): Part[] => (value === "" ? [] : [{ type: "text", text: value }]);
export const reasoning = (value: string): Part[] => (value === "" ? [] : [{ type: "reasoning", text: value }]);
export const file = (found: FileContent): Part[] => [{ type: "file", file: found }];

/** What a result says, before it is known which call it answers. */
export type ResultContent = Pick<ResultPart, "text" | "json" | "failed" | "denied"> &
  Partial<Pick<ResultPart, "files">>;

/**
 * The parts for the calls and results of a message, each time the next one. A dialect takes one for each call and each
 * result that it meets, so that they have the ids and names by which they are paired.
 */
export function traffic(calls: readonly FoundCall[], results: readonly FoundResult[]) {
  let nextCall = 0;
  let nextResult = 0;
  return {
    call: (): Part[] => {
      const found = calls[nextCall++];
      return found ? [{ type: "call", ...found }] : [];
    },
    result: (told: ResultContent): Part[] => {
      const found = results[nextResult++];
      if (!found) return [];
      const { call, idless, name } = found;
      const { files = [], ...rest } = told;
      return [{ type: "result", call, ...(idless ? { idless } : {}), ...(name ? { name } : {}), ...rest, files }];
    },
  };
}

/** The parts of a message in any dialect, including one that has no `parts`: its results are then shown as they are. */
export function partsOf<M>(message: M, dialect: Dialect<M>): Part[] {
  if (dialect.parts) return dialect.parts(message);
  const calls = dialect.calls(message);
  const results = dialect.results(message);
  const { call, result } = traffic(calls, results);
  const decided = (dialect.approvals?.(message) ?? []).map((one): ApprovalPart => ({ type: "approval", ...one }));
  return [
    ...text(dialect.text(message)),
    ...calls.flatMap(call),
    ...results.flatMap(() => result({ text: printed(message), failed: false })),
    ...decided,
  ];
}

/** For people: a string as it is, anything else as JSON. */
export function printed(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `(${value.byteLength} bytes)`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // JSON fails on cycles and BigInt. Neither can be recorded.
    return "(a value that cannot be printed)";
  }
}
