import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Chat, ChatEvent, ChatState } from "../../../src/contract/host.ts";
import { ChatFeed } from "../../../src/events/chat-feed.ts";
import { EventStream } from "../../../src/events/event-stream.ts";
import { type FollowParts, followSession } from "../../../src/events/follow-session.ts";
import type { RecordHub } from "../../../src/events/record-hub.ts";

/** What the promise allows between a model's delta and the socket of each follower. */
const PROMISED_MS = 100;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A running chat whose answer the test writes, and followers whose sockets keep what they are sent. */
function stage(followers: number) {
  let listener: (event: ChatEvent) => void = () => {};
  const state = {
    id: "s",
    status: "running",
    isBusy: true,
    items: [],
    live: { text: "", reasoning: "", calls: [] },
    outputs: {},
  };
  const chat = { state: state as unknown as ChatState, subscribe: (given: typeof listener) => (listener = given) };
  const feed = new ChatFeed(chat as unknown as Chat);
  // No record is written: the journal gathers streamed text meanwhile.
  const hub = { after: () => silence(), cursor: "0" } as unknown as RecordHub;
  const sent = Array.from({ length: followers }, () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const written: string[] = [];
    response.write = ((text: string) => written.push(text) > 0) as typeof response.write;
    const followed: FollowParts = { hub, feed: () => feed, watch: () => () => {} };
    const position = { cursor: "0", answer: null, characters: 0 };
    void followSession(new EventStream(response, {}), followed, { position, isBrief: false });
    return written;
  });
  const grow = (text: string): void => {
    const live = chat.state.live!;
    chat.state = { ...chat.state, live: { ...live, text: live.text + text } };
  };
  return { sent, grow, say: (text: string) => listener({ type: "text", text }) };
}

function silence() {
  return { next: () => new Promise<never>(() => {}), return: async () => ({ done: true }) };
}

const textsIn = (written: readonly string[]): string[] =>
  written
    .flatMap((event) => /^event: text\ndata: (.*)$/m.exec(event)?.slice(1) ?? [])
    .map((json) => JSON.parse(json).text);

test("each delta is written to every follower's socket before anything else runs", () => {
  const { sent, grow, say } = stage(20);
  for (let delta = 1; delta <= 50; delta++) {
    grow(`word ${delta} `);
    say(`word ${delta} `);
    // Neither a timer nor a promise has had its turn.
    for (const written of sent) expect(textsIn(written)).toHaveLength(delta);
  }
  expect(textsIn(sent[0]!).join("")).toMatch(/^word 1 .* word 50 $/);
});

test("text that no event announces is written within the promised time", () => {
  const { sent, grow } = stage(1);
  grow("silent");
  expect(textsIn(sent[0]!)).toEqual([]);
  vi.advanceTimersByTime(PROMISED_MS);
  expect(textsIn(sent[0]!)).toEqual(["silent"]);
});
