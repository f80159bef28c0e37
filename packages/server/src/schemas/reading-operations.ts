import { z } from "zod";
import type { Operation } from "./operation.ts";
import { flag, id, limit } from "./operation-parts.ts";
import * as transcript from "./transcript.ts";

/** What a session contains. */
export const readingOperations = {
  getTranscript: {
    method: "get",
    path: "/sessions/:id/transcript",
    tag: "reading",
    summary: "A range of the conversation, as people read it",
    description:
      "By index (`from`), from the end (`last`), what may have changed since a cursor (`since`), or what surrounds a message (`around`) or a time (`near`). Give one of these; `near` may come with `around`, for a message that is not there.",
    access: "read",
    params: id,
    query: z.strictObject({
      from: z.coerce.number().int().min(0).optional(),
      last: z.coerce.number().int().min(1).max(2000).optional(),
      since: transcript.cursor.optional(),
      around: z.string().min(1).max(400).optional().describe("The id of an item, a message or a tool call."),
      near: z.iso.datetime().optional().describe("The item that was recorded nearest to this time."),
      until: z.coerce
        .number()
        .int()
        .min(1)
        .optional()
        .describe("Reads the replaced conversation with this last record: see `/sessions/:id/epochs`."),
      limit: limit(200, 2000),
    }),
    answers: { 200: transcript.transcript },
    problems: [404, 410, 422],
  },
  getTimeline: {
    method: "get",
    path: "/sessions/:id/timeline",
    tag: "reading",
    summary: "Turns, model calls, tools, deaths and replacements, with times",
    description:
      "The whole session, or a window of it. In a long session, neighbours of one kind that are too short to tell apart are merged; ask for a window to see more of them. Marks are merged with their own kind only.",
    access: "read",
    params: id,
    query: z.strictObject({
      from: z.iso.datetime().optional(),
      to: z.iso.datetime().optional(),
      buckets: limit(600, 2000).describe("How many bars of a row can be told apart, such as its width in pixels."),
    }),
    answers: { 200: transcript.timeline },
    problems: [404],
  },
  getEpochs: {
    method: "get",
    path: "/sessions/:id/epochs",
    tag: "reading",
    summary: "The conversations that a compaction, rewind or clear replaced",
    access: "read",
    params: id,
    answers: { 200: transcript.epochs },
    problems: [404],
  },
  getChanges: {
    method: "get",
    path: "/sessions/:id/changes",
    tag: "reading",
    summary: "The files that the session changed, with diffs",
    access: "read",
    params: id,
    answers: { 200: transcript.changes },
    problems: [404, 422],
  },
  getUsage: {
    method: "get",
    path: "/sessions/:id/usage",
    tag: "reading",
    summary: "Tokens and cost by turn, model and day",
    access: "read",
    params: id,
    answers: { 200: transcript.usageReport },
    problems: [404],
  },
  getTree: {
    method: "get",
    path: "/sessions/:id/tree",
    tag: "reading",
    summary: "The sub-agents of a session, and the session it was forked from",
    access: "owner",
    params: id,
    answers: { 200: transcript.tree },
    problems: [404, 422],
  },
  exportSession: {
    method: "get",
    path: "/sessions/:id/export",
    tag: "reading",
    summary: "The session as a file",
    access: "owner",
    params: id,
    query: z.strictObject({
      format: z.enum(["markdown", "html", "jsonl", "messages"]).default("markdown"),
      redact: flag.default(false).describe("Replace credentials."),
    }),
    answers: { 200: "text/plain" },
    problems: [404, 422],
  },
  followEvents: {
    method: "get",
    path: "/sessions/:id/events",
    tag: "reading",
    summary: "Follow a session (server-sent events)",
    description:
      "Starts after `Last-Event-ID` (or `after`), sends what was missed, then goes on live. Without either it starts at the beginning; `after=end` sends only what is new. See the schemas RecordEvent, TextEvent and StateEvent.",
    access: "read",
    params: id,
    query: z.strictObject({
      after: z
        .string()
        .max(200)
        .optional()
        .describe("An event id, `start` or `end`. Last-Event-ID wins, because a browser sends it after a reconnect."),
      records: z.enum(["full", "brief"]).default("full").describe("`brief`: records without their content."),
    }),
    answers: { 200: "text/event-stream" },
    problems: [404, 503],
  },
} as const satisfies Record<string, Operation>;
