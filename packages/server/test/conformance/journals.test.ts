import type { Account } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  expectedGist,
  type Gist,
  gistOf,
  type Journal,
  writeJournals,
} from "../../../holdfast/test/journals/journals.ts";
import { type Expected, lives } from "../../../holdfast/test/journals/lives.ts";
import { RemoteHost } from "../../src/client/index.ts";
import { ServerStage } from "../server-stage.ts";

/** The killed sessions that every surface is held to, in a server and for its clients. */

const stage = new ServerStage();
let own: readonly Journal[] = [];
let foreign: readonly Journal[] = [];
beforeAll(async () => {
  own = await writeJournals(stage.folder, "holdfast");
  foreign = await writeJournals(stage.folder, "other");
  // What happens to a call is known once the session is open: the table's program may run each call.
  await stage.start({ config: { allow: ["look"] } });
  for (const { id } of own) stage.host.trustOf(id).workIn(stage.work);
});
afterAll(() => stage[Symbol.asyncDispose]());

const names = lives().map(({ name }) => name);
const named = (journals: readonly Journal[], name: string): Journal => journals.find((one) => one.name === name)!;

/** This program's rules do not say that `look` is safe to repeat, so that a record which says so does not suffice. */
function expectedHere(expected: Expected): Gist {
  const calls = Object.entries(expected.calls).map(([id, [state, onFinish]]) => {
    return [id, [state, onFinish === "run-again" ? "tell-model" : onFinish]] as const;
  });
  return expectedGist({ ...expected, calls: Object.fromEntries(calls) }, "writer");
}

async function accountAt(id: string): Promise<Account> {
  const { account, status } = await stage.client.call("getSession", { params: { id } });
  expect(account.state).toBe(status);
  return account as Account;
}

test("the list shows the state of each", async () => {
  const { sessions } = await stage.client.call("listSessions", { query: { empty: "true", limit: 1000 } });
  const shown = new Map(sessions.map(({ id, status, app, queued }) => [id, { status, app, queued }]));
  for (const [app, journals] of [
    ["holdfast", own],
    ["other", foreign],
  ] as const)
    for (const { id, name, expected } of journals)
      expect(shown.get(id), name).toEqual({ status: expected.state, app, queued: expected.queued ?? 0 });
});

describe("another program's session", () => {
  test.each(names)("%s: is told, and is not continued", async (name) => {
    const { id, expected } = named(foreign, name);
    const before = await accountAt(id);
    expect(gistOf(before)).toEqual(expectedGist(expected, "another", { decides: false }));
    for (const path of ["/turns", "/turns/finish", "/open"]) {
      const body = path === "/turns" ? { text: "go on" } : {};
      const answer = await stage.fetch(`/sessions/${id}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect(answer.status).toBe(409);
      expect(await answer.json()).toMatchObject({
        code: "SESSION_FOREIGN",
        detail: expect.stringContaining('"other"'),
      });
    }
    expect(await accountAt(id)).toEqual(before);
  });
});

test.each(names)(
  "%s: closed, open, over the wire and opened by a host of this process, it says the same",
  async (name) => {
    const { id, expected } = named(own, name);
    const closed = await accountAt(id);
    expect(gistOf(closed)).toEqual(expectedGist(expected, "writer", { decides: false }));

    const remote = await RemoteHost.connect(stage.client);
    const chat = await remote.open(id);
    const open = await accountAt(id);
    expect(open).toMatchObject({ holder: { pid: process.pid }, cursor: null });
    // Opening a session ends a turn that had its answer. It changes nothing else.
    if (expected.answered) expect(gistOf(open)).toEqual(expectedGist({ state: "idle", calls: {} }, "writer"));
    else {
      expect(gistOf(open)).toEqual(expectedHere(expected));
      const calls = open.calls.map(({ onFinish: _, ...call }) => call);
      expect({ ...lasting(open), calls }).toEqual(lasting(closed));
    }
    expect(chat.state.account).toEqual(open);
    expect(await firstStateOf(id)).toEqual(open);
    await remote.close();

    await stage.client.call("closeSession", { params: { id } });
    const local = await stage.host.open(id);
    expect(lasting(local.state.account)).toEqual(lasting(open));
    await local.close();
  },
);

/** An account without what tells who has the session open. */
function lasting({ holder: _, cursor: __, ...rest }: Account): Omit<Account, "holder" | "cursor"> {
  return rest;
}

/** The account in the first state that a new stream of events tells. */
async function firstStateOf(id: string): Promise<Account> {
  for await (const { name, data } of stage.client.events(id))
    if (name === "state") return (JSON.parse(data) as { state: { account: Account } }).state.account;
  throw new Error("the stream ended without a state");
}

describe("a session that was taken over", () => {
  test.each(["b starts", "suspended", "failed", "stopped by the user", "ended"])(
    "%s: is this program's until it is closed",
    async (name) => {
      const { id, expected } = named(foreign, name);
      stage.host.trustOf(id).workIn(stage.work);
      const remote = await RemoteHost.connect(stage.client);
      const chat = await remote.open(id, { takeOver: true });
      expect(gistOf(chat.state.account)).toEqual(expectedHere(expected));
      await remote.close();
      await stage.client.call("closeSession", { params: { id } });
    },
  );
});
