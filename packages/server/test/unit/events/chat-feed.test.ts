import { expect, test } from "vitest";
import type { Chat, ChatEvent, ChatState, LiveAnswer } from "../../../src/contract/host.ts";
import { ChatFeed, type Piece } from "../../../src/events/chat-feed.ts";

/** A chat whose state the test sets. */
class SetChat {
  state = { id: "s", status: "idle", items: [], live: null, outputs: {} } as unknown as ChatState;
  #listener: (event: ChatEvent) => void = () => {};

  subscribe(listener: (event: ChatEvent) => void): () => void {
    this.#listener = listener;
    return () => {};
  }

  live(live: Partial<LiveAnswer> | null, event?: ChatEvent): void {
    const whole = live && { text: "", reasoning: "", calls: [], ...live };
    this.state = { ...this.state, live: whole };
    if (event) this.#listener(event);
  }
}

function followed(): { readonly chat: SetChat; readonly feed: ChatFeed; readonly seen: string[] } {
  const chat = new SetChat();
  const feed = new ChatFeed(chat as unknown as Chat);
  const seen: string[] = [];
  const text = ({ json }: Piece): void => {
    const { answer, at, channel, text: said } = JSON.parse(json);
    seen.push(`${answer.split("-").at(-1)} ${at} ${channel} ${said}`);
  };
  feed.follow({ text, state: () => {}, closed: () => {} });
  return { chat, feed, seen };
}

const text = (said: string): ChatEvent => ({ type: "text", text: said });

test("each piece of an answer has its place, over all channels", () => {
  const { chat, feed, seen } = followed();
  chat.live({ reasoning: "hm" }, { type: "reasoning", text: "hm" });
  const { calls } = chat.state.live!;
  chat.live({ reasoning: "hm", text: "a", calls }, text("a"));
  chat.live({ reasoning: "hm", text: "ab", calls }, text("b"));
  // The input of a call grows without an event.
  chat.live({ reasoning: "hm", text: "ab", calls: [{ id: "c", name: "write", input: "{" }] });
  feed.sync();
  expect(seen).toEqual(["1 0 reasoning hm", "1 2 text a", "1 3 text b", "1 4 input {"]);
  expect(feed.textAfter(null, 0).map(({ end }) => end)).toEqual([2, 4, 5]);
  // More input, and more text before anybody looked.
  chat.live({ reasoning: "hm", text: "abc", calls: [{ id: "c", name: "write", input: "{}" }] }, text("c"));
  expect(seen.slice(4)).toEqual(["1 5 text c", "1 6 input }"]);
});

test("an answer that took the place of another is a new one, whatever its first words are", () => {
  const { chat, feed, seen } = followed();
  chat.live({ text: "ab" }, text("ab"));
  // A retry: the old answer is gone, and the new one begins with the same words.
  chat.live({ text: "abc" }, text("abc"));
  chat.live(null);
  chat.live({ text: "abcd" }, text("abcd"));
  chat.live({ text: "xy" });
  feed.sync();
  expect(seen).toEqual(["1 0 text ab", "2 0 text abc", "3 0 text abcd", "4 0 text xy"]);
});
