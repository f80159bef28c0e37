import { type AnthropicMessage, isHoldfastError, newId, openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../place.ts";
import { says, user } from "./anthropic-messages.ts";

type M = AnthropicMessage;

test.each([
  ["folder", (path: string) => path],
  ["sqlite", (path: string) => `sqlite:${path}/store.db`],
])("%s: another reader sees which turn runs, and what its answer has streamed so far", async (_, addressIn) => {
  using here = place();
  await using store = await openStore(addressIn(here.path));
  await using other = await openStore(addressIn(here.path));
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 1 });
  expect([session.running, session.draft]).toEqual([null, null]);
  const turn = await session.startTurn(user("Count."));
  const { draft } = turn.request();
  draft.push({ text: "One " });
  draft.push({ text: "two " });
  await session.flush();
  for (const view of [session, await other.read<M>(session.id)]) {
    expect(view.running).toBe(1);
    expect(view.draft).toMatchObject({ id: draft.id, text: "One two " });
  }
  await draft.commit(says("One two three."), { end: true });
  for (const view of [session, await other.read<M>(session.id)])
    expect([view.running, view.draft]).toEqual([null, null]);
  await session.startTurn(user("Again."));
  await session.close();
  expect((await other.read<M>(session.id)).running, "a turn whose process is gone does not run").toBe(null);
});

test.each(["memory:", "folder", "sqlite"])(
  "%s: a session with an id of the application's is created once",
  async (kind) => {
    using here = place();
    const address = kind === "folder" ? here.path : kind === "sqlite" ? `sqlite:${here.path}/store.db` : kind;
    await using store = await openStore(address);
    const id = newId();
    const session = await store.create<M>({ dialect: "anthropic", id });
    expect(session.id).toBe(id);
    const refused = (given: string, code: string): Promise<boolean> =>
      store.create<M>({ dialect: "anthropic", id: given }).then(
        () => false,
        (error: unknown) => isHoldfastError(error, code as never),
      );
    expect(await refused(id, "SESSION_EXISTS")).toBe(true);
    await session.close();
    expect(await refused(id, "SESSION_EXISTS")).toBe(true);
    for (const bad of ["", "../x", id.toUpperCase()]) expect(await refused(bad, "ID_INVALID")).toBe(true);
  },
);
