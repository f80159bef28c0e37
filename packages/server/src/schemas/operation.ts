import type { z } from "zod";
import type { ProblemStatus } from "./problem.ts";

/**
 * One operation of the HTTP interface. The same schemas validate requests, document the interface (docs/openapi.json)
 * and, in tests, validate answers.
 */
export interface Operation {
  readonly method: "get" | "post" | "patch" | "delete";
  /** With `:name` for a parameter. */
  readonly path: `/${string}`;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /**
   * `read`: a read-only token for the session suffices. `owner`: needs the server's own token. `open`: needs none, and
   * reveals nothing.
   */
  readonly access: "read" | "owner" | "open";
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** By status. Null: no body. A string: the media type of a body that is not JSON. */
  readonly answers: Readonly<Record<number, z.ZodType | string | null>>;
  /** Statuses of its own problems, besides those that every operation with its input can answer with. */
  readonly problems: readonly ProblemStatus[];
}

type Output<T> = T extends z.ZodType ? z.output<T> : Record<string, never>;

/** What a handler receives: validated. */
export interface Input<O extends Operation> {
  readonly params: Output<O["params"]>;
  readonly query: Output<O["query"]>;
  readonly body: Output<O["body"]>;
}
