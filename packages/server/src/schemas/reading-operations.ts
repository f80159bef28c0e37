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
    description: "By index (`from`), from the end (`last`), or what may have changed since a cursor (`since`).",
    access: "read",
    params: id,
    query: z.strictObject({
      from: z.coerce.number().int().min(0).optional(),
      last: z.coerce.number().int().min(1).max(2000).optional(),
      since: transcript.cursor.optional(),
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
    access: "read",
    params: id,
    answers: { 200: transcript.timeline },
    problems: [404, 422],
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
