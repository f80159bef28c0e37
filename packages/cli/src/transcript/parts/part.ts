import type { ShownFile } from "./file.ts";

/** What a message holds, whatever dialect it is in. */
export type Part = TextPart | FilePart | CallPart | ResultPart | ProgressPart | ApprovalPart;

export interface TextPart {
  readonly type: "text" | "reasoning";
  readonly text: string;
}

export interface FilePart {
  readonly type: "file";
  readonly file: ShownFile;
}

export interface CallPart {
  readonly type: "call";
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly by: "agent" | "provider";
  readonly awaiting?: boolean;
  readonly approval?: string;
}

export interface ResultPart {
  readonly type: "result";
  readonly call: string;
  /** It came without an id: `call` is a stand-in. */
  readonly idless?: true;
  readonly name?: string;
  readonly text: string;
  /** The same as JSON, where it is more than a text. */
  readonly json?: unknown;
  readonly failed: boolean;
  readonly denied?: true;
  readonly files: readonly ShownFile[];
}

/** What is said of a call while it runs, as ACP does. */
export interface ProgressPart {
  readonly type: "progress";
  readonly call: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly text: string;
  readonly running: boolean;
}

/** What a person decided. */
export interface ApprovalPart {
  readonly type: "approval";
  readonly approval: string;
  readonly approved: boolean;
  readonly reason?: string;
}

/** What the readers need of a dialect: which calls and results are in a message, by the ids that they are paired by. */
export interface Ids {
  readonly calls: readonly Omit<CallPart, "type">[];
  readonly results: readonly { readonly call: string; readonly idless?: true; readonly name?: string }[];
}

export const text = (value: string): TextPart[] => (value === "" ? [] : [{ type: "text", text: value }]);
export const reasoning = (value: string): TextPart[] => (value === "" ? [] : [{ type: "reasoning", text: value }]);
export const call = (found: Ids["calls"][number] | undefined): CallPart[] =>
  found ? [{ type: "call", ...found }] : [];

/** What a result says, before it is known which call it answers. */
export interface ResultContent {
  readonly text: string;
  readonly json?: unknown;
  readonly failed: boolean;
  readonly denied?: true;
  readonly files?: readonly ShownFile[];
}

export function result(found: Ids["results"][number] | undefined, told: ResultContent): ResultPart[] {
  if (!found) return [];
  const { call: id, idless, name } = found;
  const { files = [], ...rest } = told;
  return [{ type: "result", call: id, ...(idless ? { idless } : {}), ...(name ? { name } : {}), ...rest, files }];
}
