import { z } from "zod";
import { chatState } from "./session.ts";
import { item } from "./transcript.ts";

/**
 * What `GET /sessions/:id/events` sends, by the name of the event.
 *
 * The id of an event is `seq-crc` of the last record that was sent. While an answer is streamed, `~answer.position`
 * follows: the place in that answer. A client that comes back with it gets what it missed, and nothing twice.
 *
 * - `record`: one record of the journal. Each once, in order, whichever process wrote it. What
 *   a client that comes back gets depends on its last id alone. With `records=brief`, without the record's content.
 * - `text`: streamed text, as soon as the model sends it and long before the journal has it. If the answer has been
 *   recorded before a client comes back, its record has the text.
 * - `state`: what else changed in a session that this server has open. The first one after connecting has all of it
 *   (`whole`), each later one only what changed. It has no id: after a reconnect the whole state comes again.
 * - `start-over`: the last id is no longer in the journal. Forget everything; what follows starts at the beginning.
 * - `closed`: this server no longer has the session open. Records by other processes still follow.
 * - `deleted`: the session is in the trash. Nothing follows.
 */
export const recordEvent = z
  .object({ seq: z.int(), at: z.string(), kind: z.string() })
  .catchall(z.unknown())
  .meta({ id: "RecordEvent", description: "A record as docs/FORMAT.md describes it, without `crc` and `summary`." });

export const textEvent = z
  .object({
    answer: z.string().describe("Which answer. A new one starts with position 0; what was live before is over."),
    at: z
      .int()
      .describe(
        "How much of this answer came before, of all channels, in UTF-16 code units: the length of a string in JavaScript, not in Python. 😀 counts as two.",
      ),
    channel: z.enum(["text", "reasoning", "input"]),
    call: z.object({ id: z.string(), name: z.string() }).optional().describe("For `input`: the call being written."),
    text: z.string(),
  })
  .meta({ id: "TextEvent" });

/** A `ChatEvent` of contract/host.ts; `text` and `reasoning` have events of their own. */
export const chatEvent = z.object({ type: z.string() }).catchall(z.unknown()).meta({ id: "ChatEvent" });

export const stateEvent = z
  .object({
    whole: z.boolean().describe("All members of `state` are there. Read the items from the transcript."),
    version: z
      .string()
      .describe(
        "Names the state of the items after this event. A transcript has a version too: ignore the `items` of events up to it. Versions of one session differ only in the number after the dot.",
      ),
    position: z
      .string()
      .describe(
        "How far this is in what the server has announced of the session. The header `holdfast-position` of an answer names the position that shows what the request did. Positions differ only in the number after the dot, until the server opens the session again.",
      ),
    state: chatState.partial().describe("The members that changed. `live` is only here when it becomes null."),
    items: z
      .object({
        at: z.int().describe("The index of the first item that changed."),
        remove: z.int().describe("How many items to remove there."),
        insert: z.array(item),
      })
      .optional(),
    turn: z.int().optional().describe("With the event `turn.ended`: which turn."),
    event: chatEvent.optional().describe("What happened. `state` and `items` already show it."),
  })
  .meta({ id: "StateEvent" });

/** A header of every answer about a session that the server has open: where the events show what the request did. */
export const POSITION = "holdfast-position";

export const startOverEvent = z
  .object({ code: z.literal("CURSOR_STALE"), detail: z.string() })
  .meta({ id: "StartOverEvent" });

export const endEvent = z.object({ detail: z.string() }).meta({ id: "EndEvent" });

export const events = {
  record: recordEvent,
  text: textEvent,
  state: stateEvent,
  "start-over": startOverEvent,
  closed: endEvent,
  deleted: endEvent,
} as const;

export type EventName = keyof typeof events;
export type TextEvent = z.infer<typeof textEvent>;
export type StateEvent = z.infer<typeof stateEvent>;
