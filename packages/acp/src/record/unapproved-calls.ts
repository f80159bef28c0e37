import type { CallFacts, Json } from "holdfast";
import { objectOf, type Params, stringOf } from "./message.ts";

/** The note of a session with the calls for which permission was requested and not given. */
export const UNAPPROVED = "acp.unapproved";
/** The newest are kept: each request rewrites the list. */
const CALLS_MAX = 100;

/** The calls of a session for which permission was requested and not given: they have not run. */
export class UnapprovedCalls {
  readonly #record: (calls: Json) => Promise<void>;
  #calls: readonly string[];

  /** `recorded`: what an earlier process recorded. */
  constructor(recorded: Json | undefined, record: (calls: Json) => Promise<void>) {
    this.#record = record;
    this.#calls = callsIn(recorded);
  }

  get facts(): Readonly<Record<string, CallFacts>> {
    return unapprovedFacts([...this.#calls]);
  }

  async asked(call: string): Promise<void> {
    if (!this.#calls.includes(call)) await this.#note([...this.#calls, call]);
  }

  /**
   * The client's answer. One that is not clearly a refusal counts as permission: the call may then have run. Returns
   * the permitted call.
   */
  async decided({ toolCall, options }: Params, outcome: Params | null): Promise<string | null> {
    const call = stringOf(objectOf(toolCall)?.["toolCallId"]);
    if (call === null || !isGiven(options, outcome)) return null;
    await this.forget([call]);
    return call;
  }

  /** Calls that are in progress, or announced: agents use ids again, and nothing is known of the new call. */
  async forget(calls: readonly string[]): Promise<void> {
    const left = this.#calls.filter((call) => !calls.includes(call));
    if (left.length < this.#calls.length) await this.#note(left);
  }

  async #note(calls: readonly string[]): Promise<void> {
    const newest = calls.slice(-CALLS_MAX);
    await this.#record(newest);
    this.#calls = newest;
  }
}

/** What the note of a session says of its calls. */
export function unapprovedFacts(recorded: Json | undefined): Record<string, CallFacts> {
  return Object.fromEntries(callsIn(recorded).map((call) => [call, { unapproved: true }]));
}

function callsIn(recorded: Json | undefined): string[] {
  return Array.isArray(recorded) ? recorded.filter((one) => typeof one === "string") : [];
}

function isGiven(options: unknown, outcome: Params | null): boolean {
  if (outcome?.["outcome"] !== "selected") return false;
  const chosen = (Array.isArray(options) ? options : [])
    .map(objectOf)
    .find((one) => one?.["optionId"] === outcome["optionId"]);
  return !String(chosen?.["kind"]).startsWith("reject");
}
