import { z } from "zod";
import type { Operation } from "./operation.ts";
import { CHANGES, cwd, flag, id, limit, model } from "./operation-parts.ts";
import * as session from "./session.ts";

const title = z.string().max(4096);
const labels = z.record(z.string(), z.string());

/** Sessions: created, listed, opened, deleted. */
export const sessionOperations = {
  listSessions: {
    method: "get",
    path: "/sessions",
    tag: "sessions",
    summary: "List sessions, newest first",
    access: "owner",
    query: z.strictObject({
      cwd: cwd.optional(),
      app: z.string().optional(),
      parent: session.sessionId.optional(),
      status: session.status.optional(),
      label: z
        .union([z.string(), z.array(z.string())])
        .transform((one) => (Array.isArray(one) ? one : [one]))
        .pipe(z.array(z.string().regex(/^[^=]+=/)))
        .optional()
        .describe("`name=value`; repeatable."),
      since: z.iso.datetime({ offset: true }).optional(),
      until: z.iso.datetime({ offset: true }).optional(),
      empty: flag.optional().describe("Include sessions without a turn."),
      unreadable: flag.optional().describe("Only sessions that cannot be read."),
      limit: limit(100, 1000),
      after: z.string().optional().describe("`next` of the previous page."),
    }),
    answers: { 200: session.sessionPage },
    problems: [],
  },
  createSession: {
    method: "post",
    path: "/sessions",
    tag: "sessions",
    summary: "Create a session",
    access: "owner",
    body: z.strictObject({
      cwd,
      model: model.optional(),
      title: title.optional(),
      labels: labels.optional(),
      keep: z
        .boolean()
        .default(true)
        .describe("Keep the session even if nothing happens in it. If false, closing it then removes it."),
      finishAfterRestart: z
        .boolean()
        .optional()
        .describe(
          "After a crash, the server finishes an interrupted turn of this session by itself, up to three times.",
        ),
    }),
    answers: { 201: session.session },
    problems: [422, 503],
  },
  searchSessions: {
    method: "get",
    path: "/search",
    tag: "sessions",
    summary: "Search titles and messages, newest sessions first",
    access: "owner",
    query: z.strictObject({ q: z.string().min(1).max(1000), limit: limit(50, 1000) }),
    answers: { 200: session.searchPage },
    problems: [],
  },
  listTrash: {
    method: "get",
    path: "/trash",
    tag: "sessions",
    summary: "List deleted sessions, the last one deleted first",
    access: "owner",
    answers: { 200: session.trashPage },
    problems: [],
  },
  getUnfinished: {
    method: "get",
    path: "/folders/unfinished",
    tag: "sessions",
    summary: "The last session of a folder, if it is unfinished and nobody has it open",
    access: "owner",
    query: z.strictObject({ cwd }),
    answers: { 200: z.object({ session: session.unfinished.nullable() }) },
    problems: [],
  },
  getPrompts: {
    method: "get",
    path: "/folders/prompts",
    tag: "sessions",
    summary: "What was asked in the latest sessions of a folder, oldest first",
    access: "owner",
    query: z.strictObject({ cwd, except: z.string().default("") }),
    answers: { 200: z.object({ prompts: z.array(z.string()) }) },
    problems: [],
  },
  openLatest: {
    method: "post",
    path: "/folders/latest",
    tag: "sessions",
    summary: "Open the latest session of a folder, an unfinished one first",
    access: "owner",
    body: z.strictObject({ cwd, model: model.optional() }),
    answers: { 200: z.object({ session: session.session.nullable() }) },
    problems: [409, 422, 503],
  },
  getSession: {
    method: "get",
    path: "/sessions/:id",
    tag: "sessions",
    summary: "Read a session",
    description: "Opens nothing. `state` is there while this server has the session open.",
    access: "read",
    params: id,
    answers: { 200: session.session },
    problems: [404, 422],
  },
  changeSession: {
    method: "patch",
    path: "/sessions/:id",
    tag: "sessions",
    summary: "Rename a session, or change its model or mode",
    access: "owner",
    params: id,
    body: z.strictObject({
      title: title.optional(),
      model: model.optional(),
      mode: session.mode.optional(),
      finishAfterRestart: z.boolean().optional(),
    }),
    answers: { 200: session.session },
    problems: CHANGES,
  },
  deleteSession: {
    method: "delete",
    path: "/sessions/:id",
    tag: "sessions",
    summary: "Move a session to the trash",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: [404, 409],
  },
  restoreSession: {
    method: "post",
    path: "/sessions/:id/restore",
    tag: "sessions",
    summary: "Take a session out of the trash",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: [404, 409],
  },
  forkSession: {
    method: "post",
    path: "/sessions/:id/fork",
    tag: "sessions",
    summary: "Create a session with the conversation up to a message",
    access: "owner",
    params: id,
    body: z.strictObject({
      at: z.string().optional().describe("The id of an item; default: the whole conversation."),
      cwd: cwd.optional().describe("The folder that it works in, an absolute path; default: that of the session."),
    }),
    answers: { 201: session.session },
    problems: [404, 422, 503],
  },
  openSession: {
    method: "post",
    path: "/sessions/:id/open",
    tag: "sessions",
    summary: "Open a session in this server",
    description:
      "Takes the session for this server, and asks open questions again. Other operations that need it open do this by themselves.",
    access: "owner",
    params: id,
    body: z.strictObject({
      model: model.optional(),
      takeOver: z
        .boolean()
        .optional()
        .describe("Continue a session that another program wrote. Without it, such a session is refused."),
    }),
    answers: { 200: session.session },
    problems: CHANGES,
  },
  closeSession: {
    method: "post",
    path: "/sessions/:id/close",
    tag: "sessions",
    summary: "Let other processes open the session",
    description: "Refused with TURN_OPEN while a turn runs. The server also closes a session that nobody uses.",
    access: "owner",
    params: id,
    answers: { 204: null },
    problems: [404, 409],
  },
} as const satisfies Record<string, Operation>;
