import type { Entry, Interruption, OpenCall } from "holdfast";
import type { CallState } from "./item.ts";
import type { NeutralMessage, PartOf } from "./said.ts";

/** A call, and everything known about it. */
export interface FoundCall {
  readonly entry: Entry<unknown>;
  readonly part: PartOf<"call">;
  answer: { readonly entry: Entry<unknown>; readonly part: PartOf<"result"> } | null;
  /** What was reported while it ran. */
  readonly progress: PartOf<"progress">[];
  approved: boolean | null;
}

/** A result whose call is not recorded. */
export interface Orphan {
  readonly entry: Entry<unknown>;
  readonly part: PartOf<"result">;
}

/** How far to look back for an older call with the same id and no result: repeated ids are close together. */
const LOOK_BACK_MAX = 64;

/**
 * Which result belongs to which call, for people: a late result is shown with its call, and a real outcome counts more
 * than one that Holdfast filled in. (The library decides what the model sees.)
 */
export class Calls {
  /** By entry, in the order of its parts. */
  readonly byEntry = new Map<string, FoundCall[]>();
  readonly orphans = new Map<string, Orphan[]>();
  readonly #byId = new Map<string, FoundCall[]>();
  readonly #byName = new Map<string, { readonly calls: FoundCall[]; from: number }>();
  readonly #byApproval = new Map<string, FoundCall>();

  /** Returns the entries whose calls have changed. */
  add(entry: Entry<unknown>, { parts }: NeutralMessage): Set<string> {
    const touched = new Set<string>();
    let index = 0;
    for (const part of parts) {
      switch (part.type) {
        case "call":
          this.#call(entry, part);
          break;
        case "result":
          this.#result(entry, part, index++, touched);
          break;
        case "progress":
          this.#progress(entry, part, touched);
          break;
        case "approval": {
          const found = this.#byApproval.get(part.approval);
          if (!found) break;
          found.approved ??= part.approved;
          touched.add(found.entry.id);
          break;
        }
      }
    }
    return touched;
  }

  #call(entry: Entry<unknown>, part: PartOf<"call">): void {
    // ACP announces a call, then asks for permission.
    const announced = part.awaiting ? this.#byId.get(part.id)?.at(-1) : undefined;
    if (announced && announced.entry.id !== entry.id && !announced.answer && part.approval === undefined) return;
    const found: FoundCall = { entry, part, answer: null, progress: [], approved: null };
    push(this.byEntry, entry.id, found);
    push(this.#byId, part.id, found);
    const named = this.#byName.get(part.name);
    if (named) named.calls.push(found);
    else this.#byName.set(part.name, { calls: [found], from: 0 });
    const approval = part.approval ?? (part.awaiting ? part.id : undefined);
    if (approval !== undefined && !this.#byApproval.has(approval)) this.#byApproval.set(approval, found);
  }

  #result(entry: Entry<unknown>, part: PartOf<"result">, index: number, touched: Set<string>): void {
    const found = this.#answeredBy(entry, part, index);
    if (!found) push(this.orphans, entry.id, { entry, part });
    else if (!found.answer || (found.answer.entry.synthetic !== undefined && entry.synthetic === undefined)) {
      found.answer = { entry, part };
      touched.add(found.entry.id);
    }
  }

  #answeredBy({ call: place }: Entry<unknown>, part: PartOf<"result">, index: number): FoundCall | null {
    const placed = place && index === 0 ? this.byEntry.get(place.message)?.[place.index] : undefined;
    if (placed) return placed;
    if (part.idless) return this.#oldestOpen(part.name);
    const calls = this.#byId.get(part.call);
    if (!calls) return null;
    const end = Math.max(0, calls.length - LOOK_BACK_MAX);
    let found: FoundCall | null = null;
    for (let at = calls.length - 1; at >= end; at--) {
      const candidate = calls[at]!;
      if (candidate.answer) continue;
      if (found && candidate.entry !== found.entry) break;
      found = candidate;
    }
    return found ?? calls.at(-1)!;
  }

  #oldestOpen(name: string | undefined): FoundCall | null {
    const queues = name === undefined ? [...this.#byName.values()] : [this.#byName.get(name)];
    for (const queue of queues) {
      while (queue && queue.from < queue.calls.length && queue.calls[queue.from]!.answer) queue.from += 1;
      const found = queue?.calls[queue.from];
      if (found) return found;
    }
    return null;
  }

  #progress(entry: Entry<unknown>, part: PartOf<"progress">, touched: Set<string>): void {
    const found = this.#byId.get(part.call)?.at(-1);
    if (!found) {
      const { call: id, name = id, input } = part;
      this.#call(entry, { type: "call", id, name, input, by: "agent" });
      this.#byId.get(id)!.at(-1)!.progress.push(part);
    } else if (!found.answer) {
      found.progress.push(part);
      touched.add(found.entry.id);
    }
  }
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** Known only to the process that runs the agent. */
export interface Now {
  /** Calls whose tool is running. */
  readonly running?: ReadonlySet<string>;
  /** Calls that wait for approval. */
  readonly waiting?: ReadonlySet<string>;
  /** By call: the session of its sub-agent. */
  readonly children?: ReadonlyMap<string, string>;
}

/** The calls that the interruption found open, by the message that makes them. */
export class OpenOnes {
  readonly #calls = new Map<string, OpenCall>();

  constructor(interruption: Interruption<unknown> | null) {
    for (const call of interruption?.calls ?? []) this.#calls.set(`${call.message ?? ""} ${call.id}`, call);
  }

  of({ entry, part }: FoundCall): OpenCall | undefined {
    return this.#calls.size === 0 ? undefined : this.#calls.get(`${entry.id} ${part.id}`);
  }
}

/** Only another record can change what is known about it. */
export function isOver({ answer }: FoundCall): boolean {
  return answer !== null && answer.entry.synthetic !== "running";
}

export function stateOf(found: FoundCall, open: OpenCall | undefined, isLive: boolean, now: Now): CallState {
  const { part, answer, approved, progress } = found;
  if (answer) return answerState(answer, approved, isLive);
  if (approved === false) return "denied";
  if (now.running?.has(part.id)) return "running";
  if (now.waiting?.has(part.id)) return "waiting";
  if (open) return OPEN[open.state];
  if (isLive && progress.at(-1)?.running) return "running";
  return isLive && part.awaiting && approved === null ? "waiting" : "open";
}

const OPEN: { readonly [S in OpenCall["state"]]: CallState } = {
  "never-started": "not-run",
  "outcome-unknown": "unknown",
  unrecorded: "unknown",
  awaiting: "waiting",
  provider: "open",
};

/** The state of a repaired call, by the repair's reason. */
const CLOSED = new Map<string, CallState>([
  ["never-started", "not-run"],
  ["awaiting", "not-run"],
  ["outcome-unknown", "unknown"],
  ["unrecorded", "unknown"],
  ["provider", "unknown"],
]);

function answerState(
  { entry, part }: NonNullable<FoundCall["answer"]>,
  approved: boolean | null,
  isLive: boolean,
): CallState {
  if (part.denied || (approved === false && part.failed)) return "denied";
  if (entry.synthetic === "running") return isLive ? "running" : "unknown";
  const closed = entry.synthetic === undefined ? undefined : CLOSED.get(entry.synthetic);
  return closed ?? (part.failed ? "failed" : "done");
}
