import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setImmediate as tick } from "node:timers/promises";
import {
  type AnthropicMessage,
  isHoldfastError,
  type JournalRecord,
  openStore,
  type Session,
  type Store,
} from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { afterEach, describe, expect, test } from "vitest";
import { endsNow, type Guarded } from "../../../../src/session/guarded.ts";
import { place } from "../../../place.ts";
import { calls, says, user } from "../anthropic-messages.ts";
import { openLaterStore } from "../session-async-store-later.ts";
import { FailingDisk } from "../session-failures-disk.ts";

/** The answer of a turn and its end, in one unit. */

type M = AnthropicMessage;

const unhandled: unknown[] = [];
process.on("unhandledRejection", (error) => unhandled.push(error));
const opened: Disposable[] = [];
afterEach(async () => {
  await tick();
  for (const one of opened.splice(0)) one[Symbol.dispose]();
  expect(unhandled.splice(0)).toEqual([]);
});

function somewhere(): string {
  const here = place();
  opened.push(here);
  return here.path;
}

const OPTIONS = { dialect: "anthropic", draftMs: 60_000 } as const;
const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "nothing",
    (error) => (isHoldfastError(error) ? error.code : error),
  );

async function kindsOf(store: Store, id: string): Promise<string[]> {
  const records: JournalRecord[] = await Array.fromAsync(store.history(id));
  return records
    .filter(({ kind }) => !["segment", "opened", "closed", "session"].includes(kind))
    .map(({ kind, outcome }) => (outcome === undefined ? kind : `${kind} ${outcome}`));
}

describe.each(["commit", "append"] as const)("%s with end", (how) => {
  const answer = async (session: Session<M>, message: M, options: object): Promise<{ id: string; seq: number }> => {
    const turn = session.turn!;
    return how === "append" ? turn.append(message, options) : turn.request().draft.commit(message, options);
  };

  test("records the answer and the end in one write, and says where the answer stands", async () => {
    const disk = new FailingDisk("write");
    const store = await openStoreWith(
      (options) => openFolderStore(somewhere(), { ...options, disk: disk.disk, catalogue: false }),
      { recordsToolStarts: true },
    );
    const session = await store.create<M>(OPTIONS);
    await session.startTurn(user("go"));
    // The second write from here on would fail.
    disk.countdown = 2;
    const { id, seq } = await answer(session, says("Done."), { usage: { outputTokens: 3 }, end: true });
    disk.countdown = 0;
    expect(session.turn).toBe(null);
    expect(session.interruption).toBe(null);
    expect(session.usage).toEqual({ outputTokens: 3 });
    expect(session.entries.at(-1)).toMatchObject({ id, seq });
    expect(await kindsOf(store, session.id)).toEqual([
      "turn.started",
      "message",
      "message",
      "usage",
      "turn.ended completed",
    ]);
    expect((await store.list()).sessions[0]).toMatchObject({ status: "idle" });
    await store.close();
  });

  test("if there is no space, nothing of it is recorded, and the turn goes on", async () => {
    const disk = new FailingDisk("write");
    const store = await openStoreWith(
      (options) => openFolderStore(somewhere(), { ...options, disk: disk.disk, catalogue: false }),
      { recordsToolStarts: true },
    );
    const session = await store.create<M>(OPTIONS);
    const turn = await session.startTurn(user("go"));
    disk.countdown = 1;
    expect(await codeOf(answer(session, says("Done."), { end: true }))).toBe("STORE_FULL");
    expect(session.turn).toBe(turn);
    expect(session.messages).toEqual([user("go")]);
    await answer(session, says("Done."), { end: true });
    expect(session.turn).toBe(null);
    expect(await kindsOf(store, session.id)).toEqual(["turn.started", "message", "message", "turn.ended completed"]);
    await store.close();
  });

  test("from the call on the turn takes nothing more, and other ends of it change nothing", async () => {
    const store = await openStoreWith((options) => openLaterStore(options, async () => void (await tick())), {
      recordsToolStarts: true,
    });
    const session = await store.create<M>(OPTIONS);
    const turn = await session.startTurn(user("go"));
    const answered = answer(session, says("Done."), { end: true });
    expect(session.turn).toBe(null);
    const late = [
      turn.append(says("More.")),
      turn.toolStarted("a"),
      session.startTurn(user("next")),
      turn.abort({ by: "user" }),
      turn.end(),
    ];
    expect(await Promise.all(late.map(codeOf))).toEqual(["TURN_ENDED", "TURN_ENDED", "nothing", "nothing", "nothing"]);
    await answered;
    expect(turn.signal.aborted).toBe(false);
    expect(await kindsOf(store, session.id)).toEqual([
      ...["turn.started", "message"],
      ...["message", "turn.ended completed"],
      ...["turn.started", "message"],
    ]);
    await store.close();
  });

  test("an answer that is recorded already is not written twice, and the turn ends", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<M>(OPTIONS);
    const turn = await session.startTurn(user("go"));
    const { seq } = await turn.append(says("Done."), { id: "a1" });
    turn.request().draft.push({ text: "words that nobody wants" });
    expect(await turn.append(says("Done."), { id: "a1", end: true, usage: { outputTokens: 1 } })).toMatchObject({
      id: "a1",
      seq,
    });
    await session.flush();
    expect(session.turn).toBe(null);
    expect(await kindsOf(store, session.id)).toEqual(["turn.started", "message", "message", "turn.ended completed"]);
  });

  test("of a message that is refused, nothing is recorded, and the turn goes on", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<M>(OPTIONS);
    await session.startTurn(user("go"));
    expect(await codeOf(answer(session, { role: "nobody" } as never, { end: true }))).toBe("MESSAGE_UNFIT");
    expect(await codeOf(answer(session, { ...says("x"), cache: 1n } as never, { end: true }))).toBe("MESSAGE_NOT_JSON");
    expect(session.turn).not.toBe(null);
    await answer(session, says("Done."), { end: true });
    expect(session.turn).toBe(null);
  });

  test("`end: false` leaves it open, and closing the session waits for the end", async () => {
    const store = await openStoreWith((options) => openLaterStore(options, async () => void (await tick())), {
      recordsToolStarts: true,
    });
    const session = await store.create<M>(OPTIONS);
    const turn = await session.startTurn(user("go"));
    await answer(session, calls("a"), { end: false });
    expect(session.turn).toBe(turn);
    await turn.tool("a", () => "seen");
    const answered = answer(session, says("Done."), { end: true });
    await session.close();
    await answered;
    expect((await store.read<M>(session.id)).interruption).toBe(null);
    await store.close();
  });
});

test("words that were being streamed are gone with a turn that ends with another message", async () => {
  await using store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ ...OPTIONS, draftMs: 0 });
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  const { draft } = turn.request();
  draft.push({ text: "Half an" });
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "x" }] };
  await turn.append(result as never, { end: true });
  draft.push({ text: " answer" });
  expect(await codeOf(draft.commit(says("Half an answer")))).toBe("DRAFT_DISCARDED");
  await session.flush();
  expect((await kindsOf(store, session.id)).at(-1)).toBe("turn.ended completed");
  expect((await store.read<M>(session.id)).interruption).toBe(null);
});

describe("a turn that was cut off behind its answer", () => {
  /** The session in the next process. */
  async function cutOff(how: "killed" | "crashed" | "close" | "user" | "failed" | "suspended"): Promise<{
    store: Store;
    session: Session<M>;
  }> {
    const folder = somewhere();
    const first = await openStore(folder, { recordsToolStarts: true });
    const before = await first.create<M>(OPTIONS);
    const turn = await before.startTurn(user("go"));
    await turn.append(says("Done."));
    if (how === "user") await turn.abort({ by: "user" });
    if (how === "failed") await turn.fail("the answer does not fit");
    if (how === "suspended") await turn.suspend({ reason: "a second look" });
    if (how === "crashed")
      (before as never as Guarded)[endsNow]({ signal: "uncaughtException", error: "boom" } as never);
    if (how === "killed" || how === "crashed") await killStore(folder, first);
    else await first.close();
    const store = await openStore(folder, { recordsToolStarts: true });
    return { store, session: await store.resume<M>(before.id) };
  }

  /** As SIGKILL leaves it: the records of a clean end are taken off. */
  async function killStore(folder: string, store: Store): Promise<void> {
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".jsonl"));
    const contents = files.map((name) => [`${folder}/${name}`, readFileSync(`${folder}/${name}`)] as const);
    await store.close();
    for (const [path, bytes] of contents) writeFileSync(path, bytes);
  }

  test.each([
    ["killed", { kind: "killed" }],
    ["crashed", { kind: "failed", error: "boom" }],
    ["close", { kind: "aborted", by: "close" }],
    ["user", { kind: "aborted", by: "user" }],
  ] as const)(
    "%s: it is answered, and completeTurn completes it without a word to the model",
    async (how, expected) => {
      const { store, session } = await cutOff(how);
      expect(session.interruption).toMatchObject({ answered: true, how: expected });
      const before = session.messages;
      await session.completeTurn();
      expect(session.interruption).toBe(null);
      expect(session.messages).toEqual(before);
      expect(await codeOf(session.completeTurn())).toBe("NOTHING_TO_RESUME");
      expect(await codeOf(session.resumeTurn())).toBe("NOTHING_TO_RESUME");
      expect((await store.read<M>(session.id)).interruption).toBe(null);
      expect((await store.list()).sessions[0]).toMatchObject({ status: "idle" });
      await session.startTurn(user("next"));
      expect(session.messages).toEqual([...before, user("next")]);
      await store.close();
    },
  );

  test("a new prompt completes it as well", async () => {
    const { store, session } = await cutOff("killed");
    await session.startTurn(user("next"));
    expect(session.messages).toEqual([user("go"), says("Done."), user("next")]);
    expect(await kindsOf(store, session.id)).toContain("turn.ended completed");
    await store.close();
  });

  test("so does a prompt that an array brings", async () => {
    const { store, session } = await cutOff("killed");
    await session.sync([...session.messages, user("next")]);
    expect(await kindsOf(store, session.id)).toContain("turn.ended completed");
    await store.close();
  });

  test.each(["failed", "suspended"] as const)("%s: the application said that it is not done", async (how) => {
    const { store, session } = await cutOff(how);
    expect(session.interruption).toMatchObject({ answered: false, how: { kind: how } });
    expect(await codeOf(session.completeTurn())).toBe("TURN_UNANSWERED");
    expect(session.interruption).not.toBe(null);
    await store.close();
  });

  test("completeTurn ends no open turn, and no turn that lacks its answer", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<M>(OPTIONS);
    expect(await codeOf(session.completeTurn())).toBe("NOTHING_TO_RESUME");
    const turn = await session.startTurn(user("go"));
    expect(await codeOf(session.completeTurn())).toBe("TURN_OPEN");
    await turn.append(calls("a"));
    await turn.abort({ by: "user" });
    expect(await codeOf(session.completeTurn())).toBe("TURN_UNANSWERED");
    await session.close();
    expect(await codeOf(session.completeTurn())).toBe("SESSION_CLOSED");
  });
});
