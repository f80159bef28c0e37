import { z } from "zod";
import type { Operation } from "./operation.ts";
import { CHANGES, id } from "./operation-parts.ts";
import * as session from "./session.ts";

const key = z
  .string()
  .min(1)
  .max(256)
  .refine((text) => text.isWellFormed(), { message: "A key must be well-formed Unicode." })
  .describe("Stands for this prompt for as long as the session lives. With another prompt it is refused (KEY_TAKEN).");
const text = z.string().min(1).describe("The prompt.");

/** What the agent does in a session. */
export const turnOperations = {
  startTurn: {
    method: "post",
    path: "/sessions/:id/turns",
    tag: "turns",
    summary: "Give the agent a prompt",
    description:
      "Starts a turn, or queues the prompt while one runs. The prompt is durable when the answer comes. If no answer comes, send it again with the same `key`, also to a server that was started again: it is one turn. A turn that was cut off meanwhile is then finished.",
    access: "owner",
    params: id,
    body: z.strictObject({ text, images: z.array(session.image).max(20).default([]), key: key.optional() }),
    answers: { 202: z.object({ outcome: z.enum(["started", "queued"]) }) },
    problems: CHANGES,
  },
  stopTurn: {
    method: "post",
    path: "/sessions/:id/turns/stop",
    tag: "turns",
    summary: "Stop the running turn; keep what it produced",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: [404, 422],
  },
  finishTurn: {
    method: "post",
    path: "/sessions/:id/turns/finish",
    tag: "turns",
    summary: "Finish the interrupted turn",
    access: "owner",
    params: id,
    body: z.strictObject({
      processes: z.enum(["wait", "stop"]).default("wait").describe("What to do about tools that outlived their agent."),
    }),
    answers: { 202: z.object({ outcome: z.literal("started") }) },
    problems: CHANGES,
  },
  leaveTurn: {
    method: "post",
    path: "/sessions/:id/turns/leave",
    tag: "turns",
    summary: "Leave the interrupted turn as it is",
    description: "The next prompt tells the model what happened.",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: CHANGES,
  },
  getQueue: {
    method: "get",
    path: "/sessions/:id/queue",
    tag: "turns",
    summary: "Prompts that wait for their turn",
    access: "read",
    params: id,
    answers: { 200: z.object({ queue: z.array(session.queued) }) },
    problems: [404, 422],
  },
  withdrawPrompt: {
    method: "delete",
    path: "/sessions/:id/queue/:item",
    tag: "turns",
    summary: "Remove a prompt from the queue",
    access: "owner",
    params: z.strictObject({ id: session.sessionId, item: z.string().min(1).max(200) }),
    answers: { 204: null },
    problems: CHANGES,
  },
  resumeQueue: {
    method: "post",
    path: "/sessions/:id/queue/resume",
    tag: "turns",
    summary: "Start the prompts that are still queued",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: CHANGES,
  },
  getPermissions: {
    method: "get",
    path: "/sessions/:id/permissions",
    tag: "permission",
    summary: "Calls that wait for a person",
    description: "Opens a session that waits and that nobody has open, so that its questions can be answered.",
    access: "owner",
    params: id,
    answers: { 200: z.object({ asks: z.array(session.ask) }) },
    problems: [404, 422, 503],
  },
  answerPermission: {
    method: "post",
    path: "/sessions/:id/permissions",
    tag: "permission",
    summary: "Answer a call that waits for permission",
    description:
      "The first answer counts. A later one is refused with ALREADY_ANSWERED, which says how it was answered.",
    access: "owner",
    params: id,
    body: z.strictObject({
      call: z.string().min(1).max(1000),
      answer: z.enum(["allow", "always", "project", "deny"]),
      reason: z.string().max(10_000).optional().describe("The model is told the reason of a denial."),
      digest: z
        .string()
        .max(200)
        .optional()
        .describe("The digest of the question that the person saw: refused if the question is another one by now."),
    }),
    answers: { 204: null },
    problems: CHANGES,
  },
  compact: {
    method: "post",
    path: "/sessions/:id/compact",
    tag: "conversation",
    summary: "Replace the conversation by a summary",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: CHANGES,
  },
  clear: {
    method: "post",
    path: "/sessions/:id/clear",
    tag: "conversation",
    summary: "Start an empty conversation in this session",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: CHANGES,
  },
  undo: {
    method: "post",
    path: "/sessions/:id/undo",
    tag: "conversation",
    summary: "Undo the last compact, clear or rewind",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: CHANGES,
  },
  rewind: {
    method: "post",
    path: "/sessions/:id/rewind",
    tag: "conversation",
    summary: "Remove a prompt and everything after it",
    access: "owner",
    params: id,
    body: z.strictObject({ message: z.string().min(1).max(200).describe("The id of a prompt's item.") }),
    answers: { 200: z.object({ prompt: z.string().describe("The text of the removed prompt.") }) },
    problems: CHANGES,
  },
} as const satisfies Record<string, Operation>;
