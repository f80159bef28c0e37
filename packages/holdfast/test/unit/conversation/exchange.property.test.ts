import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Exchange } from "../../../src/conversation/exchange.ts";
import type { Item } from "../../../src/conversation/item.ts";
import type { Entry } from "../../../src/dialects/dialect.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { holds, seedOf } from "../../seed.ts";
import { entry, frozen, oddHappenings, spoken } from "../dialects/dialect-conversations.ts";
import { type Voice, voices } from "../dialects/dialect-voices.ts";

/** R9, C29: the live end of a conversation, which grows record by record, and a view, which sees all of it, agree. */

const seed = seedOf(import.meta.url, "unit");

/** Some results are made for one call of the message before them, as repairs and recorded outcomes are. */
const placed = fc.array(fc.record({ at: fc.nat(20), back: fc.nat(3), index: fc.nat(2), late: fc.boolean() }), {
  maxLength: 4,
});

function withPlaces(
  { dialect }: Voice,
  entries: Entry<unknown>[],
  places: readonly { at: number; back: number; index: number; late: boolean }[],
): Entry<unknown>[] {
  const found = [...entries];
  for (const { at, back, index, late } of places) {
    const assistants = found.flatMap(({ message }, i) => (dialect.role(message) === "assistant" ? [i] : []));
    const from = assistants.at(-1 - back);
    const maker = from === undefined ? undefined : found[from];
    const call = maker && dialect.calls(maker.message)[index];
    const message = call && dialect.result(call, { value: `placed ${at}` });
    if (!message) continue;
    const rest = late ? { late } : { call: { message: maker.id, index } };
    found.splice(Math.min(found.length, from! + 1 + (at % 5)), 0, entry(message, 100 + found.length, rest));
  }
  return found;
}

const itemOf = ({ dialect }: Voice, one: Entry<unknown>): Item<unknown> => ({
  entry: one,
  from: one.call ? "repair" : "message",
  role: dialect.role(one.message),
  hidden: false,
  redacted: false,
});

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  test("which result answers which call is the same live and in a view, after every message", () => {
    holds(
      fc.property(oddHappenings, placed, (conversation, places) => {
        const entries = frozen(withPlaces(voice, spoken(voice, conversation), places));
        const live = new Exchange(voice.dialect);
        for (const [at, one] of entries.entries()) {
          live.add(itemOf(voice, one));
          const some = entries.slice(0, at + 1);
          const { calls } = pair(some, voice.dialect).exchanges.at(-1)!;
          expect(live.calls.map(({ item, index, answer }) => [item.entry.id, index, answer?.entry.id ?? null])).toEqual(
            calls.map(({ entry: from, index, answer }) => [
              some[from]!.id,
              index,
              answer ? some[answer.entry]!.id : null,
            ]),
          );
        }
      }),
      seed,
      300,
    );
  });
});

test("R9: a result with the id of an earlier search of the provider's is not taken for one that lost its id", () => {
  const { dialect } = voices.find(({ dialect: { name } }) => name === "anthropic")!;
  const messages = [
    {
      role: "assistant",
      content: [
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
        { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
      ],
    },
    { role: "user", content: "go on" },
    { role: "assistant", content: [{ type: "tool_use", name: "read", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "srvtoolu_1", content: "found" }] },
  ];
  const entries = messages.map((message, at) => entry(message, at));
  const live = new Exchange(dialect);
  for (const one of entries) live.add(itemOf(voices[0]!, one));
  expect(live.calls.map(({ answer }) => answer)).toEqual([null]);
  expect(
    pair(entries, dialect)
      .exchanges.at(-1)!
      .calls.map(({ answer }) => answer),
  ).toEqual([null]);
});
