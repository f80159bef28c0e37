import { type Tool, tool } from "ai";
import { z } from "zod";
import type { FileContext, Watch } from "./files/context.ts";
import { editFile } from "./files/edit.ts";
import { listFolder } from "./files/list.ts";
import { readText } from "./files/read.ts";
import { search } from "./files/search.ts";
import { writeFile } from "./files/write.ts";
import { runShell, type ShellContext, TIMEOUT_SECONDS, TIMEOUT_SECONDS_MAX } from "./shell/shell.ts";

/** What the tools may know of the agent that runs them. One for each session. */
export interface ToolContext extends FileContext, ShellContext {
  /** For a call that changes a file: the check that runs right before the change, and is told right after it. */
  readonly watch?: (call: string, name: string, input: unknown) => Watch;
}

export interface ToolInputs {
  readonly read: { path: string; offset?: number | undefined; limit?: number | undefined };
  readonly write: { path: string; content: string };
  readonly edit: { path: string; old: string; new: string; all?: boolean | undefined };
  readonly list: { path?: string | undefined };
  readonly search: { pattern: string; path?: string | undefined };
  readonly shell: { command: string; timeoutSeconds?: number | undefined };
}

export type ToolName = keyof ToolInputs;

/** All of them answer text, and throw an Error in words for the model. */
export type Tools = { readonly [N in ToolName]: Tool<ToolInputs[N], string> };

/** Whether running a tool twice does no harm. Recorded with each start, so that a resumed turn knows what may be run again (R5). */
export const REPLAY: Readonly<Record<string, "safe" | "never">> = {
  read: "safe",
  list: "safe",
  search: "safe",
  // The same bytes in the same place.
  write: "safe",
  edit: "never",
  shell: "never",
};

const path = (what: string) =>
  z.string().min(1).describe(`${what}; relative to the working folder, or absolute. Outside of it a person is asked.`);

/** The tools of one agent. They do what they are told: whether they may is decided before (permission/decide.ts). */
export function makeTools(context: ToolContext): Tools {
  return {
    read: tool({
      description:
        "Reads a text file. Answers its text as it stands, without line numbers. Of a long one the first lines, and where to read on.",
      inputSchema: z.object({
        path: path("The file"),
        offset: z.number().int().min(1).optional().describe("The first line to read, counted from 1."),
        limit: z.number().int().min(1).optional().describe("How many lines."),
      }),
      execute: (input, { abortSignal }) => readText(context, input, abortSignal),
    }),
    write: tool({
      description:
        "Writes a whole file, in one instant: a new one, or in the place of what was there. Folders are made. To change a part of a file, use edit.",
      inputSchema: z.object({ path: path("The file"), content: z.string().describe("All of the new text.") }),
      execute: (input, { toolCallId }) => writeFile(context, input, context.watch?.(toolCallId, "write", input)),
    }),
    edit: tool({
      description:
        "Replaces a text in a file by another. The old text must stand in it exactly once, blanks and line ends included; with `all`, every place is replaced.",
      inputSchema: z.object({
        path: path("The file"),
        old: z.string().min(1).describe("The text to be replaced, exactly as it stands in the file."),
        new: z.string().describe("The text to be put there."),
        all: z.boolean().optional().describe("Replace every place. Default: there must be exactly one."),
      }),
      execute: (input, { toolCallId }) => editFile(context, input, context.watch?.(toolCallId, "edit", input)),
    }),
    list: tool({
      description: "Lists the files in a folder and in the folders in it, without .git and node_modules.",
      inputSchema: z.object({ path: path("The folder").optional() }),
      execute: (input, { abortSignal }) => listFolder(context, input, abortSignal),
    }),
    search: tool({
      description:
        "Searches the lines of text files for a regular expression (as in JavaScript). Answers path:line: text. Skips binary files, .git and node_modules.",
      inputSchema: z.object({
        pattern: z.string().min(1).describe("The regular expression."),
        path: path("A folder or a file; default: the working folder").optional(),
      }),
      execute: (input, { abortSignal }) => search(context, input, abortSignal),
    }),
    shell: tool({
      description:
        "Runs a command by sh in the working folder, without a terminal and without input. Answers what it printed, and its exit status if that is not 0. Of long output the beginning and the end; the whole is kept in a file.",
      inputSchema: z.object({
        command: z.string().min(1),
        timeoutSeconds: z
          .number()
          .positive()
          .max(TIMEOUT_SECONDS_MAX)
          .optional()
          .describe(`It is ended after this time. Default ${TIMEOUT_SECONDS}.`),
      }),
      execute: (input, { toolCallId, abortSignal }) => runShell(context, toolCallId, input, abortSignal),
    }),
  };
}
