import type { Dialect, Entry } from "holdfast";
import type { SampleCall } from "./subject.ts";

/** One thing that every dialect must do. It throws if the dialect does not. */
export interface DialectCase {
  readonly name: string;
  run(): Promise<void> | void;
}

export const READ: SampleCall = { id: "call_1", name: "read", input: { path: "a.txt" } };
export const WRITE: SampleCall = { id: "call_2", name: "write", input: { path: "b.txt" } };

export function resultsOf<M>(dialect: Dialect<M>, messages: readonly M[]): string[] {
  return messages.flatMap((message) => dialect.results(message).map(({ call }) => call));
}

export function entryOf<M>(message: M, at: number, step = `step-${at}`): Entry<M> {
  const id = `entry-${at}`;
  return { id, seq: at + 1, at: "2026-01-01T00:00:00.000Z", turn: 1, step, message, metadata: {} };
}

/** Some SDKs keep the input as JSON text. */
export function inputOf(input: unknown): unknown {
  return typeof input === "string" ? JSON.parse(input) : input;
}

export function shown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
