import type { Operation } from "./operation.ts";
import { readingOperations } from "./reading-operations.ts";
import { recordingOperations } from "./recordings.ts";
import { serverOperations } from "./server-operations.ts";
import { sessionOperations } from "./session-operations.ts";
import { turnOperations } from "./turn-operations.ts";

/**
 * Every operation of the HTTP interface. Stable: names, paths and members may be added, but not changed, while the
 * major version of the server stays the same.
 */
export const operations = {
  ...serverOperations,
  ...sessionOperations,
  ...readingOperations,
  ...turnOperations,
  ...recordingOperations,
} as const satisfies Record<string, Operation>;

export type Operations = typeof operations;
export type OperationId = keyof Operations;
