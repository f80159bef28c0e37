import type { ListQuery } from "holdfast";
import { type RequestError, refuse } from "../access/request-error.ts";
import type { Chat } from "../contract/host.ts";
import { sessionStateOf } from "../contract/session-state.ts";
import { describeSession } from "../reading/sessions.ts";
import type { Answer, Handlers, RequestContext } from "./context.ts";

/** From memory if this server has it open. Otherwise it is read: who has it open can change without a record. */
async function described(hosting: RequestContext["hosting"], id: string): Promise<object> {
  const reading = await hosting.reading(id);
  return describeSession(hosting.host, reading, hosting.feed(id)?.chat ?? null);
}

/** The session that a chat writes to, once it is open in this server. */
async function kept(chat: Chat, { hosting }: RequestContext, status: number): Promise<Answer> {
  hosting.keep(chat);
  return { status, body: await described(hosting, chat.id) };
}

export const sessionHandlers: Handlers<
  | "listSessions"
  | "createSession"
  | "searchSessions"
  | "listTrash"
  | "getUnfinished"
  | "getPrompts"
  | "openLatest"
  | "getSession"
  | "changeSession"
  | "deleteSession"
  | "restoreSession"
  | "forkSession"
  | "openSession"
  | "closeSession"
  | "getDamage"
  | "healSession"
> = {
  listSessions: async ({ query: { label, unreadable, ...rest } }, { hosting }) => {
    const labels = Object.fromEntries((label ?? []).map((one) => splitAt(one, "=")));
    const query: Record<string, unknown> = { ...rest };
    if (label) query["labels"] = labels;
    if (unreadable) query["unreadable"] = true;
    const { sessions, next } = await hosting.host.list(query as ListQuery);
    return {
      status: 200,
      body: {
        sessions: sessions.map((one) => {
          const feed = hosting.feed(one.id);
          return { ...one, ...(feed ? { status: sessionStateOf(feed.chat.state) } : {}), here: feed !== null };
        }),
        ...(next === undefined ? {} : { next }),
      },
    };
  },
  createSession: async ({ body: { cwd, model, title, labels, keep, finishAfterRestart } }, context) => {
    const { hosting } = context;
    hosting.assertAccepting();
    const chat = await hosting.host.create({
      cwd,
      ...(model === undefined ? {} : { model }),
      ...(title === undefined ? {} : { title }),
      ...(labels === undefined ? {} : { labels }),
      ...(keep ? { keep: true as const } : {}),
    });
    if (finishAfterRestart) hosting.host.setFinishesAfterRestart(chat.id, true);
    return kept(chat, context, 201);
  },
  searchSessions: async ({ query: { q, limit } }, { hosting }) => {
    const hits: object[] = [];
    const incomplete: object[] = [];
    const onIncomplete = (session: string, why: { readonly message: string } | null): void => {
      incomplete.push({ session, why: why?.message ?? null });
    };
    for await (const hit of hosting.host.sessions.search(q, { limit }, { onIncomplete })) hits.push(hit);
    return { status: 200, body: { hits, incomplete } };
  },
  listTrash: async (_input, { hosting }) => ({
    status: 200,
    body: { sessions: await hosting.host.sessions.trashed() },
  }),
  getUnfinished: async ({ query: { cwd } }, { hosting }) => ({
    status: 200,
    body: { session: await hosting.host.unfinished(cwd) },
  }),
  getPrompts: async ({ query: { cwd, except } }, { hosting }) => ({
    status: 200,
    body: { prompts: await hosting.host.prompts(cwd, except) },
  }),
  openLatest: async ({ body: { cwd, model } }, context) => {
    context.hosting.assertAccepting();
    const chat = await context.hosting.host.latest(cwd, model === undefined ? {} : { model });
    if (chat === null) return { status: 200, body: { session: null } };
    context.hosting.keep(chat);
    return { status: 200, body: { session: await described(context.hosting, chat.id) } };
  },
  getSession: async ({ params: { id } }, { hosting }) => ({
    status: 200,
    body: await described(hosting, id),
  }),
  changeSession: async ({ params: { id }, body: { title, model, mode, finishAfterRestart } }, { hosting }) => {
    const { host } = hosting;
    await hosting.use(id, async (chat) => {
      if (model !== undefined) await chat.setModel(model);
      if (title !== undefined) await chat.rename(title);
      if (mode !== undefined) chat.setMode(mode);
    });
    if (finishAfterRestart !== undefined) host.setFinishesAfterRestart(id, finishAfterRestart);
    return { status: 200, body: await described(hosting, id) };
  },
  deleteSession: async ({ params: { id } }, { hosting }) => {
    await hosting.close(id, turnOpen);
    await hosting.host.sessions.delete(id);
    return { status: 204 };
  },
  restoreSession: async ({ params: { id } }, { hosting }) => {
    await hosting.host.sessions.restore(id);
    return { status: 204 };
  },
  forkSession: async ({ params: { id }, body: { at, cwd } }, context) => {
    context.hosting.assertAccepting();
    const options = { ...(at === undefined ? {} : { at }), ...(cwd === undefined ? {} : { cwd }) };
    return kept(await context.hosting.host.fork(id, options), context, 201);
  },
  openSession: ({ params: { id }, body: { model, takeOver } }, { hosting }) =>
    hosting.use(id, async () => ({ status: 200, body: await described(hosting, id) }), {
      ...(model === undefined ? {} : { model }),
      ...(takeOver ? { takeOver } : {}),
    }),
  closeSession: async ({ params: { id } }, { hosting }) => {
    // Throws SESSION_NOT_FOUND.
    if (!hosting.feed(id) && !(await hosting.host.sessions.has(id))) await hosting.host.sessions.read(id);
    await hosting.close(id, turnOpen);
    return { status: 204 };
  },
  getDamage: async ({ params: { id } }, { hosting }) => ({
    status: 200,
    body: await hosting.host.sessions.verify(id),
  }),
  healSession: async ({ params: { id } }, { hosting }) => {
    await hosting.close(id, turnOpen);
    return { status: 200, body: await hosting.host.sessions.heal(id) };
  },
};

/** The code and words of the host's own refusal. */
function turnOpen(): RequestError {
  return Object.assign(
    refuse("REQUEST_INVALID", "A turn is running or waits for an answer: stop it first. Nothing was touched."),
    {
      status: 409,
      code: "TURN_OPEN",
    },
  );
}

function splitAt(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark);
  return [text.slice(0, at), text.slice(at + 1)];
}
