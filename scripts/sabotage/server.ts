import type { Sabotage } from "./list.ts";

const ACCESS = ["packages/server/test/end-to-end/access.test"];
const EVENTS = ["packages/server/test/end-to-end/events.test"];
const UNIT = ["packages/server/test/unit"];
const HOSTING = ["packages/server/test/end-to-end/hosting.test"];

const server = "packages/server/src";

/** Ways to break the promises of the server. */
export const serverSabotages: readonly Sabotage[] = [
  {
    name: "server: it answers to any name, so that DNS rebinding reaches it",
    room: server,
    file: "access/check-request.ts",
    find: "if (name === null || !answersTo(name, allowed.hosts))",
    replace: "if (name === null)",
    look: ACCESS,
  },
  {
    name: "server: any web page may use the cookie",
    room: server,
    file: "access/check-request.ts",
    find: "if (!byCookie) return;",
    replace: "return;",
    look: ACCESS,
  },
  {
    name: "server: a read-only token may do everything",
    room: server,
    file: "http/app.ts",
    find: 'if (caller.access === "owner") return;',
    replace: "return;",
    look: ACCESS,
  },
  {
    name: "server: a read-only token never expires",
    room: server,
    file: "access/credentials.ts",
    find: "expiresAt === null || Date.parse(expiresAt) > now",
    replace: "expiresAt === null || now > 0",
    look: ACCESS,
  },
  {
    name: "server: an event stream outlives its read-only token",
    room: server,
    file: "handlers/streams.ts",
    find: "if (invalid.has(caller)) stream.end();",
    replace: 'if (invalid.has(caller) && caller.access === "owner") stream.end();',
    look: ACCESS,
  },
  {
    name: "server: a client whose last id is gone is left in silence",
    room: server,
    file: "events/follow-session.ts",
    find: 'if (!isHoldfastError(error, "CURSOR_STALE") || live.cursor === START) throw error;',
    replace: "throw error;",
    look: EVENTS,
  },
  {
    name: "server: a client that does not read costs memory without bounds",
    room: server,
    file: "events/follow-session.ts",
    find: "if (this.#stream.hasRoom) return true;",
    replace: "return true;",
    look: EVENTS,
  },
  {
    name: "server: a client that comes back gets streamed text twice",
    room: server,
    file: "events/chat-feed.ts",
    find: "const from = answer === this.#answer ? position : 0;",
    replace: "const from = answer === position ? 1 : 0;",
    look: EVENTS,
  },
  {
    name: "server: the second of two answers is not told that it came too late",
    room: "packages/cli/src",
    file: "host/local/answer-questions.ts",
    find: "  if (!ask) throw notAsked(prompts.answered(call));",
    replace: "  if (!ask) return;",
    look: HOSTING,
  },
  {
    name: "server: after a restart it finishes turns that nobody told it to",
    room: server,
    file: "hosting/finish-interrupted.ts",
    find: "const isWanted = host.finishesAfterRestart(id) || host.handedOver(id) === interruption.turn;",
    replace: "const isWanted = true;",
    look: ["packages/server/test/unit/hosting"],
  },
  {
    name: "server: after each restart it tries a poisoned turn again",
    room: server,
    file: "hosting/finish-interrupted.ts",
    find: "interruption.resumes < TRIES_MAX",
    replace: "interruption.resumes >= 0",
    look: HOSTING,
  },
  {
    name: "server: a stop aborts the running turns",
    room: server,
    file: "hosting/hosting.ts",
    find: "await this.host.handOver(id, leftMs, hurry).catch(ignore);",
    replace: "void leftMs;",
    look: ["packages/server/test/end-to-end/hand-over.test"],
  },
  {
    name: "server: a session is shown as running after its process was killed",
    room: server,
    file: "hosting/hosting.ts",
    find: "known.cursor === hub.cursor && (await this.#isHeldAsIn(known))",
    replace: "known.cursor === hub.cursor",
    look: HOSTING,
  },
  {
    name: "server: calls that never started are not on the timeline",
    room: server,
    file: "reading/timeline.ts",
    find: "if (!this.#recordsStarts || this.#wait !== null || this.#recorded.size === 0) return [];",
    replace: "if (this.#recordsStarts) return [];",
    look: UNIT,
  },
  {
    name: "server: an unknown outcome is hidden when bars are merged",
    room: server,
    file: "reading/resolution.ts",
    find: "if (gravityOf(one.gravest) > gravityOf(last.gravest)) last.gravest = one.gravest;",
    replace: "",
    look: UNIT,
  },
  {
    name: "server: marks of different kinds are merged",
    room: server,
    file: "reading/resolution.ts",
    find: 'one.kind === "mark" ? one.mark :',
    replace: 'one.kind === "mark" ? "mark" :',
    look: UNIT,
  },
  {
    name: "server: streamed text waits for a timer",
    room: server,
    file: "events/chat-feed.ts",
    find: "    this.sync(event);\n    this.#pace();",
    replace: "    void event;\n    this.#pace();",
    look: UNIT,
  },
];
