import { type Tool, tool } from "ai";
import { z } from "zod";
import { type PlanStep, planWords } from "../transcript/plan.ts";
import type { FileContext, Watch } from "./files/context.ts";
import { editFile } from "./files/edit.ts";
import { listFolder } from "./files/list.ts";
import { readText } from "./files/read.ts";
import { search } from "./files/search.ts";
import { writeFile } from "./files/write.ts";
import { runShell, type ShellContext, TIMEOUT_SECONDS, TIMEOUT_SECONDS_MAX } from "./shell/shell.ts";

/** What the tools know about the agent that runs them. One per session. */
export interface ToolContext extends FileContext, ShellContext {
  /** Returns the checks for a call that changes a file: one runs right before the change, one right after. */
  readonly watch?: (call: string, name: string, input: unknown) => Watch;
}

export interface ToolInputs {
  readonly read: { path: string; offset?: number | undefined; limit?: number | undefined };
  readonly write: { path: string; content: string };
  readonly edit: { path: string; old: string; new: string; all?: boolean | undefined };
  readonly list: { path?: string | undefined };
  readonly search: { pattern: string; path?: string | undefined };
  readonly shell: { command: string; timeoutSeconds?: number | undefined };
  readonly plan: {
    steps: { content: string; status: PlanStep["status"]; priority?: PlanStep["priority"] | undefined }[];
  };
}

export type ToolName = keyof ToolInputs;

/** All tools return text, and throw errors worded for the model. */
export type Tools = { readonly [N in ToolName]: Tool<ToolInputs[N], string> };

/**
 * Whether running a tool twice is harmless. Recorded with each start, so that a resumed turn knows what it may run
 * again (R5).
 */
export const REPLAY: Readonly<Record<string, "safe" | "never">> = {
  read: "safe",
  list: "safe",
  search: "safe",
  // The same bytes in the same place.
  write: "safe",
  edit: "never",
  shell: "never",
  plan: "safe",
};

const STEPS_MAX = 100;
const STEP_CHARS_MAX = 1000;

const path = (what: string) =>
  z
    .string()
    .min(1)
    .describe(`${what}; relative to the working folder, or absolute. Outside it, the user is asked first.`);

/** The tools of one agent. They do not check permissions: permission/decide.ts does that first. */
export function makeTools(context: ToolContext): Tools {
  return {
    read: tool({
      description:
        "Reads a text file. Returns the exact text, without line numbers. For a long file, returns the first lines and where to continue.",
      inputSchema: z.object({
        path: path("The file"),
        offset: z.number().int().min(1).optional().describe("The first line to read, counted from 1."),
        limit: z.number().int().min(1).optional().describe("How many lines."),
      }),
      execute: (input, { abortSignal }) => readText(context, input, abortSignal),
    }),
    write: tool({
      description:
        "Writes a whole file atomically, creating or replacing it. Creates missing folders. To change part of a file, use edit.",
      inputSchema: z.object({ path: path("The file"), content: z.string().describe("The complete new text.") }),
      execute: (input, { toolCallId, abortSignal }) =>
        writeFile(context, input, context.watch?.(toolCallId, "write", input), abortSignal),
    }),
    edit: tool({
      description:
        "Replaces text in a file. The old text must occur exactly once, including whitespace and line endings; with `all`, every occurrence is replaced.",
      inputSchema: z.object({
        path: path("The file"),
        old: z.string().min(1).describe("The text to replace, exactly as it is in the file."),
        new: z.string().describe("The replacement text."),
        all: z.boolean().optional().describe("Replace every occurrence. Default: there must be exactly one."),
      }),
      execute: (input, { toolCallId, abortSignal }) =>
        editFile(context, input, context.watch?.(toolCallId, "edit", input), abortSignal),
    }),
    list: tool({
      description: "Lists the files in a folder and its subfolders, except .git and node_modules.",
      inputSchema: z.object({ path: path("The folder").optional() }),
      execute: (input, { abortSignal }) => listFolder(context, input, abortSignal),
    }),
    search: tool({
      description:
        "Searches the lines of text files for a regular expression (JavaScript syntax). Returns path:line: text. Skips binary files, .git and node_modules.",
      inputSchema: z.object({
        pattern: z.string().min(1).describe("The regular expression."),
        path: path("A folder or a file; default: the working folder").optional(),
      }),
      execute: (input, { abortSignal }) => search(context, input, abortSignal),
    }),
    shell: tool({
      description:
        "Runs a command with sh in the working folder, without a terminal or input. Returns its output, and its exit status if not 0. Long output is shortened to its start and end; the full output is saved to a file.",
      inputSchema: z.object({
        command: z.string().min(1),
        timeoutSeconds: z
          .number()
          .positive()
          .max(TIMEOUT_SECONDS_MAX)
          .optional()
          .describe(`The command is stopped after this time. Default ${TIMEOUT_SECONDS}.`),
      }),
      execute: (input, { toolCallId, abortSignal }) => runShell(context, toolCallId, input, abortSignal),
    }),
    plan: tool({
      description:
        "Shows the user your plan for a task of several steps. Each call replaces the plan: pass all steps, and call it again when a step starts or is done. At most one step is in progress. Changes nothing else.",
      inputSchema: z.object({
        steps: z
          .array(
            z.object({
              content: z.string().min(1).max(STEP_CHARS_MAX).describe("What the step does, on one line."),
              status: z.enum(["pending", "in_progress", "completed"]),
              priority: z.enum(["high", "medium", "low"]).optional().describe("Default medium."),
            }),
          )
          .max(STEPS_MAX),
      }),
      execute: ({ steps }) => planWords(steps) || "The plan is empty.",
    }),
  };
}
