import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { cursorOf } from "holdfast/store";
import { refuse } from "../access/request-error.ts";
import type { Item } from "../contract/item.ts";
import { EventStream } from "../events/event-stream.ts";
import { followSession, type Position, parseEventId } from "../events/follow-session.ts";
import { START } from "../events/record-hub.ts";
import { changesIn, nullIfUnreadable, treeOf } from "../reading/sessions.ts";
import { TimelineFold } from "../reading/timeline.ts";
import { UsageFold } from "../reading/usage.ts";
import type { Answer, Handlers, RequestContext } from "./context.ts";

export const readingHandlers: Handlers<
  "getTranscript" | "getTimeline" | "getChanges" | "getUsage" | "getTree" | "exportSession" | "followEvents"
> = {
  getTranscript: async ({ params: { id }, query: { from, last, since, limit } }, { hosting }) => {
    const changedFrom = since === undefined ? null : await firstTurnAfter(hosting, id, since);
    const { items, cursor, version } = await itemsOf(hosting, id);
    const start =
      changedFrom !== null
        ? items.findIndex(({ turn }) => turn >= changedFrom)
        : last !== undefined
          ? Math.max(0, items.length - last)
          : (from ?? 0);
    const begin = start < 0 ? items.length : start;
    const end = changedFrom === null ? begin + (last ?? limit) : items.length;
    return {
      status: 200,
      body: { cursor, version, count: items.length, from: begin, items: items.slice(begin, end) },
    };
  },
  getTimeline: async ({ params: { id } }, { hosting }) => {
    const { host } = hosting;
    const { attributes, holder } = await host.sessions.read(id);
    const fold = new TimelineFold((message) => host.said(message, attributes.dialect));
    let from: string | null = null;
    for await (const record of host.sessions.history(id)) {
      from ??= record.at;
      fold.add(record);
    }
    fold.finish(holder !== null);
    const cursor = fold.last ? cursorOf(fold.last) : null;
    return { status: 200, body: { cursor, from, to: fold.last?.at ?? null, entries: fold.entries } };
  },
  getChanges: async ({ params: { id } }, { hosting }) => {
    const { items } = await itemsOf(hosting, id);
    return { status: 200, body: changesIn(hosting.host, items) };
  },
  getUsage: async ({ params: { id } }, { hosting }) => {
    const fold = new UsageFold();
    for await (const record of hosting.host.sessions.history(id)) fold.add(record);
    return { status: 200, body: fold.report() };
  },
  getTree: async ({ params: { id } }, { hosting }) => {
    const { host } = hosting;
    const { attributes, interruption } = await host.sessions.read(id);
    const status = hosting.feed(id)?.chat.state.status ?? (interruption ? "interrupted" : "idle");
    const { forkedFrom } = attributes;
    const source = forkedFrom && (await nullIfUnreadable(host.sessions.read(forkedFrom.session)));
    return {
      status: 200,
      body: {
        tree: await treeOf(host, id, attributes.title, status),
        forkedFrom: forkedFrom ? { ...forkedFrom, title: source?.attributes.title ?? null } : null,
      },
    };
  },
  exportSession: async ({ params: { id }, query: { format, redact } }, { hosting }) => {
    // Throws before the answer begins.
    await hosting.host.sessions.read(id);
    const pieces = hosting.host.exportAs(id, format, redact);
    const name = `session-${id.slice(0, 8)}.${format === "markdown" ? "md" : format === "messages" ? "json" : format}`;
    const headers = {
      "content-type": "text/plain; charset=utf-8",
      "content-disposition": `attachment; filename="${name}"`,
    };
    return { response: new Response(ReadableStream.from(encoded(pieces)), { headers }) };
  },
  followEvents: async ({ params: { id }, query: { after, records } }, context) => {
    // It would stay open, and never send anything.
    if (context.c.req.method === "HEAD") throw refuse("METHOD_REFUSED", "Follow the events with GET.");
    const opened = context.streams.reserve();
    try {
      const followed = await context.hosting.followed(id);
      const position = positionOf(context.c.req.header("last-event-id") ?? after, followed.hub.cursor);
      return sendEvents(context, followed, { position, isBrief: records === "brief" });
    } finally {
      opened();
    }
  },
};

type FollowedSession = Awaited<ReturnType<RequestContext["hosting"]["followed"]>>;

function sendEvents(
  { c, streams }: RequestContext,
  followed: FollowedSession,
  options: { readonly position: Position; readonly isBrief: boolean },
): Answer {
  const headers = Object.fromEntries(c.res.headers);
  const stream = new EventStream(c.env.outgoing, headers);
  streams.add(stream);
  void followSession(stream, followed, options)
    .catch((error: unknown) => {
      // The client reconnects and is told then, with a problem document.
      process.emitWarning(error instanceof Error ? error : String(error));
    })
    .finally(() => followed.release());
  return { response: RESPONSE_ALREADY_SENT };
}

/** An unknown id is as stale as one that is gone: the client is told to start over. */
function positionOf(id: string | undefined, end: string): Position {
  if (id === undefined || id === "" || id === "start") return { cursor: START, answer: null, characters: 0 };
  if (id === "end") return { cursor: end, answer: null, characters: 0 };
  return parseEventId(id) ?? { cursor: "1-0", answer: null, characters: 0 };
}

/** A page that scrolls through a session asks for a range of it many times a second. */
const known = new WeakMap<object, readonly Item[]>();

/** The items of a session, from memory if it is open here, with a record that they show. */
async function itemsOf(
  hosting: RequestContext["hosting"],
  id: string,
): Promise<{ readonly items: readonly Item[]; readonly cursor: string | null; readonly version: string | null }> {
  const feed = hosting.feed(id);
  if (feed) {
    const { hub, release } = await hosting.followed(id);
    release();
    const { cursor } = hub;
    return { items: feed.items, cursor: cursor === START ? null : cursor, version: feed.version };
  }
  const { reading, cursor } = await hosting.reading(id);
  const items = known.get(reading) ?? hosting.host.items(reading);
  // The reading of an open session changes.
  if (hosting.feed(id) === null) known.set(reading, items);
  return { items, cursor, version: null };
}

/**
 * The first turn that a record after this cursor is about: its items, and all after it, may have changed. 0 if that
 * cannot be told. Throws CURSOR_STALE.
 */
async function firstTurnAfter(hosting: RequestContext["hosting"], id: string, since: string): Promise<number> {
  const { hub, release } = await hosting.followed(id);
  try {
    let first = Number.POSITIVE_INFINITY;
    if (hub.cursor === since) return first;
    const seq = Number.parseInt(since, 10);
    let isKnown = false;
    for await (const record of hosting.host.sessions.history(id, seq)) {
      if (record.seq === seq) {
        isKnown = cursorOf(record) === since;
        if (!isKnown) break;
        continue;
      }
      const { kind, turn } = record;
      if (kind === "epoch" || kind === "patch" || kind === "edit") return 0;
      if (typeof turn === "number") first = Math.min(first, turn);
    }
    // Throws in the store's own words.
    if (!isKnown) await hosting.host.sessions.follow(id, since)[Symbol.asyncIterator]().next();
    return first;
  } finally {
    release();
  }
}

async function* encoded(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  for await (const piece of pieces) yield encoder.encode(piece);
}
