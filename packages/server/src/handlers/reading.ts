import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { JournalRecord } from "holdfast";
import { cursorOf } from "holdfast/internal";
import { refuse } from "../access/request-error.ts";
import type { Item } from "../contract/item.ts";
import { sessionStateOf } from "../contract/session-state.ts";
import { EventStream } from "../events/event-stream.ts";
import { followSession, type Position, parseEventId } from "../events/follow-session.ts";
import { START } from "../events/record-hub.ts";
import { type Range, rangeOf } from "../reading/range.ts";
import { atResolution } from "../reading/resolution.ts";
import { changesIn, itemsIn, nullIfUnreadable, treeOf } from "../reading/sessions.ts";
import type { Answer, Handlers, RequestContext } from "./context.ts";

export const readingHandlers: Handlers<
  | "getTranscript"
  | "getTimeline"
  | "getEpochs"
  | "getChanges"
  | "getUsage"
  | "getTree"
  | "exportSession"
  | "followEvents"
> = {
  getTranscript: async ({ params: { id }, query }, { hosting, histories }) => {
    assertOneOf(query);
    const { since, until } = query;
    const changedFrom = since === undefined ? null : await firstTurnAfter(hosting, id, since);
    const { items, cursor, version } =
      until === undefined ? await itemsOf(hosting, id) : await replacedItems({ hosting, histories }, id, until);
    const { begin, end, found } = changedFrom === null ? rangeOf(items, query) : changedRange(items, changedFrom);
    return {
      status: 200,
      body: { cursor, version, count: items.length, found, from: begin, items: items.slice(begin, end) },
    };
  },
  getTimeline: async ({ params: { id }, query: { from, to, buckets } }, { hosting, histories }) => {
    const { timeline } = await histories.of(id);
    const { holder, interruption } = (await hosting.reading(id)).reading;
    // Somebody may have opened the session of a writer that was killed, and not have continued it.
    const isOpen = holder !== null && interruption?.how.kind !== "killed";
    const { first, last, lanes } = timeline;
    const window = {
      fromMs: from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from),
      toMs: to === undefined ? Number.POSITIVE_INFINITY : Date.parse(to),
      buckets,
    };
    return {
      status: 200,
      body: {
        cursor: last?.cursor ?? null,
        from: first && new Date(first.ms).toISOString(),
        to: last && new Date(last.ms).toISOString(),
        turns: timeline.turns,
        lanes,
        ...atResolution(timeline.happenings(isOpen), window),
      },
    };
  },
  getEpochs: async ({ params: { id } }, { histories }) => {
    const { timeline } = await histories.of(id);
    const epochs = timeline.replaced.map(({ until, fromMs, toMs, reason, messages }) => ({
      until,
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      reason,
      messages,
    }));
    return { status: 200, body: { epochs } };
  },
  getChanges: async ({ params: { id } }, { hosting }) => {
    const { items } = await itemsOf(hosting, id);
    return { status: 200, body: changesIn(hosting.host, items) };
  },
  getUsage: async ({ params: { id } }, { histories }) => {
    const { usage } = await histories.of(id);
    return { status: 200, body: usage.report() };
  },
  getTree: async ({ params: { id } }, { hosting }) => {
    const { host } = hosting;
    const { attributes, state } = await host.sessions.read(id);
    const feed = hosting.feed(id);
    const status = feed ? sessionStateOf(feed.chat.state) : state;
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
    const opened = context.streams.reserve(context.caller!);
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
  { c, streams, caller }: RequestContext,
  followed: FollowedSession,
  options: { readonly position: Position; readonly isBrief: boolean },
): Answer {
  const headers = Object.fromEntries(c.res.headers);
  const stream = new EventStream(c.env.outgoing, headers);
  // Access was checked.
  streams.add(stream, caller!);
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
  return { items: itemsIn(hosting.host, reading), cursor, version: null };
}

const REPLACED = "replaced: the model no longer sees this";

/** A conversation that was replaced, as people read it. Throws EPOCH_UNKNOWN. */
async function replacedItems(
  { hosting, histories }: Pick<RequestContext, "hosting" | "histories">,
  id: string,
  until: number,
) {
  const reading = await histories.replaced(id, until);
  if (!reading)
    throw refuse(
      "EPOCH_UNKNOWN",
      `No replaced conversation of this session ends with record ${until}. Nothing is lost: \`/sessions/${id}/epochs\` lists those that there are.`,
      { until },
    );
  const items = itemsIn(hosting.host, reading).map((item) => ({ ...item, aside: item.aside ?? REPLACED }));
  return { items, cursor: null, version: null };
}

const WAYS = ["from", "last", "since", "around", "near"] as const;

/** A second one would be ignored in silence. */
function assertOneOf(query: Readonly<Record<string, unknown>>): void {
  const given = WAYS.filter((name) => query[name] !== undefined);
  const isOne = given.length <= 1 || given.join() === "around,near";
  if (!isOne || (query["since"] !== undefined && query["until"] !== undefined))
    throw refuse("REQUEST_INVALID", `Give one of ${WAYS.join(", ")}, not ${given.join(" and ")}. Nothing was read.`);
}

function changedRange(items: readonly Item[], firstTurn: number): Range {
  const start = items.findIndex(({ turn }) => turn >= firstTurn);
  return { begin: start < 0 ? items.length : start, end: items.length, found: null };
}

/**
 * The first turn that a record after this cursor is about: its items, and all after it, may have changed. 0 if that
 * cannot be told. Throws CURSOR_STALE.
 */
async function firstTurnAfter(hosting: RequestContext["hosting"], id: string, since: string): Promise<number> {
  const { hub, release } = await hosting.followed(id);
  try {
    let first = Number.POSITIVE_INFINITY;
    const inMemory = hub.since(since);
    if (inMemory) return firstTurnIn(inMemory.map(({ brief }) => JSON.parse(brief) as JournalRecord));
    const seq = Number.parseInt(since, 10);
    let isKnown = false;
    for await (const record of hosting.host.sessions.history(id, seq)) {
      if (record.seq === seq) {
        isKnown = cursorOf(record) === since;
        if (!isKnown) break;
        continue;
      }
      first = Math.min(first, firstTurnIn([record]));
      if (first === 0) return 0;
    }
    // Throws in the store's own words.
    if (!isKnown) await hosting.host.sessions.follow(id, since)[Symbol.asyncIterator]().next();
    return first;
  } finally {
    release();
  }
}

function firstTurnIn(records: readonly JournalRecord[]): number {
  let first = Number.POSITIVE_INFINITY;
  for (const { kind, turn } of records) {
    if (kind === "epoch" || kind === "patch" || kind === "edit") return 0;
    if (typeof turn === "number") first = Math.min(first, turn);
  }
  return first;
}

async function* encoded(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  for await (const piece of pieces) yield encoder.encode(piece);
}
