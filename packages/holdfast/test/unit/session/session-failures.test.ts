import { validateAnthropic } from "@holdfast/testkit";
import { isHoldfastError, type Session, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { afterEach, expect, test } from "vitest";
import { place } from "../../place.ts";
import { FailingDisk } from "./session-failures-disk.ts";
import { LIFE, type Life, type M } from "./session-failures-life.ts";

const opened: Disposable[] = [];
const unhandled: unknown[] = [];
process.on("unhandledRejection", (error) => unhandled.push(error));
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
  expect(unhandled.splice(0)).toEqual([]);
});

async function storeOn(disk: FailingDisk, segmentBytesMax = 1 << 26): Promise<Store> {
  const here = place();
  opened.push(here);
  return openStoreWith(
    (options) => openFolderStore(here.path, { ...options, disk: disk.disk, catalogue: false, segmentBytesMax }),
    { recordsToolStarts: true },
  );
}

async function begin(store: Store): Promise<Life> {
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 60_000 });
  return { store, session, turn: null as never, draft: null as never, runs: new Map(), outcomes: new Map() };
}

/** What a fold of the journal shows is what the live session shows: nothing was half applied. */
async function expectAsRecorded(store: Store, session: Session<M>, when: string): Promise<void> {
  const read = await store.read<M>(session.id);
  for (const member of ["entries", "queue", "usage", "attributes"] as const) {
    expect(session[member], `${member} ${when}`).toEqual(read[member]);
  }
  // Where it is in doubt whether the turn is open, so is whether its calls still run.
  const isInDoubt = session.turn ? session.turn.signal.aborted : read.running !== null;
  if (!isInDoubt) expect(session.messages, `messages ${when}`).toEqual(read.messages);
  // A turn that nobody works on any more looks open to others, as long as this process has the session.
  if (read.interruption && !session.turn) expect(session.interruption, when).toEqual(read.interruption);
  expectAccepted(session.messages, when);
}

/** Where the model is to speak next. */
function expectAccepted(messages: readonly M[], when: string): void {
  if (messages.at(-1)?.role === "user") expect(validateAnthropic(messages as never), when).toEqual([]);
}

/** Without what no two runs have in common. */
function essence(session: Session<M>): unknown {
  const { messages, entries, queue, usage, attributes } = session;
  const known = new Set(["q1", "x", "x.1", "y", "z", "p2", "p2.1", "p3", "p4", "doubt", "last"]);
  const plain = entries.map(({ id, message, metadata, synthetic, late, turn }) => {
    return { id: known.has(id) ? id : "?", message, metadata, synthetic, late, turn };
  });
  // Results are recorded in the order in which they came; the model sees them in that of their calls.
  const sorted = plain.map((entry) => JSON.stringify(entry)).sort();
  return { messages, sorted, queue, usage, attributes };
}

async function unharmed(): Promise<unknown> {
  const store = await storeOn(new FailingDisk("write"));
  const life = await begin(store);
  for (const [, step] of LIFE) await step(life);
  const found = essence(life.session);
  await store.close();
  return found;
}

test.each([
  ["large", 1 << 26],
  ["small", 700],
])(
  "P8, C19: whichever write finds no space, in %s segments: a typed error at that call, nothing half applied, and the session goes on",
  async (_, size) => {
    const wanted = await unharmed();
    for (let n = 1; ; n++) {
      const disk = new FailingDisk("write");
      const store = await storeOn(disk, size);
      const life = await begin(store);
      disk.countdown = n;
      for (const [name, step] of LIFE) {
        const when = `when write ${n} failed, in "${name}"`;
        const before = disk.failed;
        try {
          await step(life);
          // A segment that finds no space, or the mark of the end, is done without.
          const isSpared = size === 700 || name === "open again";
          expect(disk.failed === before || isSpared, `the call resolved, ${when}`).toBe(true);
        } catch (error) {
          expect(isHoldfastError(error, "STORE_FULL"), `${String(error)}, ${when}`).toBe(true);
          await expectAsRecorded(store, life.session, when);
          await step(life);
        }
        await expectAsRecorded(store, life.session, when);
      }
      expect([...life.runs].sort(), `write ${n}`).toEqual([
        ["a", 1],
        ["b", 1],
        ["c", 1],
        ["f", 1],
      ]);
      expect(essence(life.session), `write ${n}`).toEqual(wanted);
      const { id } = life.session;
      await store.close().catch((error) => expect(isHoldfastError(error, "STORE_FULL")).toBe(true));
      expect(store.live(id)).toBeNull();
      if (disk.failed === 0) return;
    }
  },
);

test("P8: whichever sync fails: a typed error at that call and all after it, no tool runs on the strength of it, and close does not hang", async () => {
  for (let n = 1; ; n++) {
    const disk = new FailingDisk("sync");
    const store = await storeOn(disk);
    const life = await begin(store);
    disk.countdown = n;
    const { id } = life.session;
    let harmless = 0;
    for (const [name, step] of LIFE) {
      const when = `when sync ${n} failed, in "${name}"`;
      try {
        await step(life);
        if (disk.failed === harmless) continue;
      } catch (error) {
        // A new segment that could not be made: nothing has happened, and the old one goes on.
        if (isHoldfastError(error, "STORE_IO")) {
          await expectAsRecorded(store, life.session, when);
          harmless += 1;
          await step(life);
          continue;
        }
        expect(isHoldfastError(error, "SYNC_FAILED"), `${String(error)}, ${when}`).toBe(true);
      }
      expect(disk.failed, when).toBe(1);
      await expectFailed(life, when);
      break;
    }
    await life.session.close().catch((error) => expect(isHoldfastError(error, "SYNC_FAILED")).toBe(true));
    for (const runs of life.runs.values()) expect(runs).toBe(1);
    const again = await store.resume<M>(id);
    expectAccepted(again.messages, `after sync ${n} failed`);
    await store.close();
    if (disk.failed === 0) return;
  }
});

/** Nothing that is to be recorded goes on. */
async function expectFailed({ store, session, turn, runs }: Life, when: string): Promise<void> {
  if (store.live(session.id) !== session) return;
  // What is in doubt is shown or not; the first unit of a writer is shown when the store has answered.
  const isFirst = when.endsWith('"enqueue"') || when.endsWith('"one more turn"');
  if (!isFirst) await expectAsRecorded(store, session, when);
  const isOpen = turn !== null && session.turn === turn;
  const before = runs.size;
  const calls: Promise<unknown>[] = [
    session.note("a", 1),
    session.flush(),
    session.enqueue({ role: "user", content: "x" }),
  ];
  if (isOpen) {
    calls.push(turn.tool("new", () => runs.set("new", 1), { name: "work", input: {} }));
    calls.push(turn.append({ role: "assistant", content: "x" }), turn.end());
    expect(turn.signal.aborted, `the signal fired, ${when}`).toBe(true);
  } else {
    calls.push(session.startTurn({ role: "user", content: "x" }));
  }
  for (const [index, result] of (await Promise.allSettled(calls)).entries()) {
    const code = result.status === "rejected" && isHoldfastError(result.reason) ? result.reason.code : result;
    expect(code, `call ${index}, ${when}`).toBe("SYNC_FAILED");
  }
  expect(runs.size, when).toBe(before);
}
