import { HoldfastError, openStore, type Store } from "holdfast";
import { expect, test } from "vitest";
import { HttpRecordings } from "../../../src/recordings/http-recordings.ts";

/** A store whose sessions cannot end their turns: another process has taken the lease. */
function withLostLease(store: Store): Store {
  const abort = async (): Promise<never> => {
    throw new HoldfastError("LEASE_LOST", "The lease is lost. Nothing was recorded.", {});
  };
  const lost = (session: object): object =>
    new Proxy(session, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name === "turn") return value && { abort };
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "create") return async (given: object) => lost(await target.create(given as never));
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("a session can be taken from a recorder whose turn cannot be ended any more", async () => {
  await using store = await openStore("memory:");
  const reported: unknown[] = [];
  const recorder = new HttpRecordings(withLostLease(store), {
    messagesIn: async () => [],
    onError: (error) => void reported.push(error),
  });
  const { session, recorder: first } = await recorder.create({ dialect: "anthropic" });
  await recorder.record(session, first!, "p", { type: "turn.start", prompt: { role: "user", content: "go" } });
  const taken = await recorder.take(session, true);
  expect(taken.recorder).not.toBe(first);
  expect(reported).toMatchObject([{ code: "LEASE_LOST" }]);
  await recorder.stop(0);
});
