import { setImmediate as tick } from "node:timers/promises";
import { type Dialect, dialects } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import { openLaterStore } from "./session-async-store-later.ts";

type M = { readonly role: "user" | "assistant"; readonly content: string };

const anthropic = dialects.anthropic as unknown as Dialect<M>;
const odd: Dialect<M> = {
  ...anthropic,
  name: "odd",
  results(message) {
    if (message.content === "odd") throw new Error("the dialect cannot read this");
    return anthropic.results(message);
  },
};

const stores = {
  "writes inside the call": openMemoryStore,
  "writes later": (options: Parameters<typeof openMemoryStore>[0]) => openLaterStore(options, () => tick()),
};

test.each(Object.entries(stores))(
  "P9: if a dialect throws on a message that is written, the caller hears of it, and the process goes on: a store that %s",
  async (_, open) => {
    await using store = await openStoreWith(open, { dialects: [odd] });
    await using session = await store.create<M>({ dialect: odd });
    // Uncaught errors fail the run.
    await expect(session.startTurn({ role: "user", content: "odd" })).rejects.toThrow("the dialect cannot read this");
    await tick();

    // Another session is not affected.
    await using other = await store.create<M>({ dialect: odd });
    await other.startTurn({ role: "user", content: "plain" });
    expect(other.messages).toEqual([{ role: "user", content: "plain" }]);
  },
);
