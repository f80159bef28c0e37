import { openStore, type Session } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place } from "../../place.ts";
import { fullAt, inArray, judged, type Made, marked, Speaker, said, spoken, World } from "./sync-agents.ts";

const clone = (messages: Made[]): Made[] => structuredClone(messages);
const stepsOf = (session: Session<Made>): string[] => session.entries.map(({ step }) => step);

describe.each(spoken)("sync in %s", (_name, voice) => {
  const { user, system, says, calls, result, step } = new Speaker(voice);
  const text = (messages: readonly Made[]): string => messages.map((message) => voice.dialect.text(message)).join("|");

  test("R14 e: a turn from its prompt to its answer, growing one by one; the second sync of it does nothing", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array: Made[] = [system("be kind"), user("question")];
    expect(await session.sync(array)).toMatchObject({ appended: { length: 2 }, epoch: false });
    expect(session.turn?.number).toBe(1);
    expect(voice.dialect.text(session.turn!.prompt.message)).toBe("question");
    expect((await world.store.list()).sessions[0]?.title).toBe("question");
    const last = () => session.entries.at(-1)!.message;
    for (const more of [calls("a", "b"), [result("a", "A")], [result("b", "B")], [user("hurry")]]) {
      array.push(...more);
      await session.sync(array);
      expect(last()).toEqual(array.at(-1));
      expect(session.turn?.number).toBe(1);
    }
    array.push(...says("done"));
    const { appended } = await session.sync(array);
    expect(appended).toEqual([session.entries.at(-1)!.id]);
    expect(session.turn).toBeNull();
    expect(session.interruption).toBeNull();
    expect(said(session.entries)).toEqual(array);
    for (const again of [array, [...array], clone(array), array.map((message) => marked(voice, message))]) {
      expect(await session.sync(again)).toEqual({ appended: [], epoch: false });
    }
    array.push(user("next"));
    await session.sync(array);
    expect(session.turn?.number).toBe(2);
    expect(judged(voice, session.messages)).toEqual([]);
  });

  test("R14: a result that only Holdfast has stays with its open call when the array is rewritten", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const answer = calls("a", "b");
    const before = [user("1"), ...says("one"), user("2"), ...says("two"), user("3"), ...says("three")];
    await session.sync([...before, user("question"), ...answer]);
    await session.turn!.toolStarted("a");
    await session.turn!.toolEnded("a", { value: "recorded by the tool" });
    const called = ["a", "c"].map((id) => ({ id, name: "read", input: "whole" as const }));
    const changed = step({ reasoning: "none", text: "said in other words", calls: called });
    const { epoch } = await session.sync([user("in short"), ...changed], { rewrite: "epoch" });
    expect(epoch).toBe(true);
    expect(JSON.stringify(session.messages)).toContain("recorded by the tool");
    expect(session.turn!.open.map(({ id }) => id)).toEqual(["c"]);
    expect(judged(voice, session.messages)).toEqual([]);
  });

  test("R14 e: history all at once", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...calls("a"), result("a", "A"), ...says("one"), system("x"), user("2"), ...says("two")];
    await session.sync(array);
    expect(said(session.entries)).toEqual(array);
    expect(session.entries.map(({ turn }) => turn).at(-1)).toBe(2);
    expect(session.turn).toBeNull();
    expect((await session.sync(array)).appended).toEqual([]);
  });

  test("R14 a: a last message that grows is a draft, and is committed under its id", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const prompt = user("question");
    const [answer] = says("Hel");
    await session.sync([prompt, answer], { open: true });
    expect(session.entries).toHaveLength(1);
    const longer = says("Hello wor")[0];
    expect(await session.sync([prompt, longer], { open: true })).toEqual({ appended: [], epoch: false });
    await session.flush();
    const killed = await world.kill(session);
    expect(killed.interruption?.draft?.text).toBe("Hello wor");
    const { id } = killed.interruption!.draft!;
    const whole = says("Hello world")[0];
    expect((await session.sync([prompt, whole])).appended).toEqual([id]);
    expect(session.turn).toBeNull();
    expect(said(session.entries)).toEqual([prompt, whole]);
  });

  test("R14 a: written into in place, and followed by more, it is committed too", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question"), ...says("Hel")];
    await session.sync(array, { open: true });
    const written = says("Hello")[0];
    for (const name of Object.keys(array[1])) delete array[1][name];
    Object.assign(array[1], written);
    array.push(user("and?"));
    await session.sync(array, { open: true });
    expect(said(session.entries)).toEqual([array[0], written, array[2]]);
    expect(session.turn?.number).toBe(2);
  });

  test("R10: other words are another draft, and a message that vanished takes its words along", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const prompt = user("question");
    await session.sync([prompt, ...says("Hel")], { open: true });
    await session.sync([prompt, ...says("Good day")], { open: true });
    await session.flush();
    expect((await world.kill(session)).interruption?.draft?.text).toBe("Good day");
    await session.sync([prompt]);
    await session.flush();
    expect((await world.kill(session)).interruption?.draft).toBeNull();
    await session.sync([prompt, ...says("Yes")]);
    expect(text(session.messages)).toBe("question|Yes");
  });

  test("R14 c: by reference, the work is that of what is new", async () => {
    const worked = { count: 0 };
    const counted =
      (member: Made) =>
      (...given: Made[]): Made => {
        worked.count++;
        return member(...given);
      };
    const counting = Object.fromEntries(
      Object.entries(voice.dialect).map(([name, member]) => [
        name,
        typeof member === "function" ? counted(member) : member,
      ]),
    ) as Made;
    await using world = new World();
    const session = await world.create({ ...voice, dialect: counting });
    const array = Array.from({ length: 300 }, (_, n) => [user(`question ${n}`), ...says(`answer ${n}`)]).flat();
    await session.sync(array);
    worked.count = 0;
    await session.sync(array);
    const same = worked.count;
    array.push(user("one more"));
    await session.sync(array);
    const one = worked.count - same;
    worked.count = 0;
    expect(same).toBeLessThan(40);
    expect(one).toBeLessThan(80);
    await session.sync(clone(array));
    expect(worked.count).toBeGreaterThan(600);
  });

  test("R14 d: the array of another session is refused, and nothing is recorded", async () => {
    await using world = new World();
    const [one, other] = [await world.create(voice), await world.create(voice)];
    const shared = [system("be kind"), user("for example"), ...says("like this")];
    const mine = [...shared, user("mine")];
    const yours = [...shared, user("yours")];
    await one.sync(mine);
    await other.sync(yours);
    mine.push(...says("my answer"));
    await one.sync(mine);
    const before = other.entries;
    await expect(other.sync(mine)).rejects.toMatchObject({
      code: "SYNC_FOREIGN",
      facts: { session: other.id, owner: one.id, index: mine.length - 1 },
    });
    expect(other.entries).toEqual(before);
    expect(await other.sync(yours)).toEqual({ appended: [], epoch: false });
  });

  test("R14 d: a fork goes on with the array of its source; what a session handed out belongs to it", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("one"), ...says("first")];
    await session.sync(array);
    const fork = await world.store.fork<Made>(session.id);
    array.push(user("two"));
    expect(await fork.sync(array)).toMatchObject({ appended: { length: 1 }, epoch: false });
    const resumed = await world.kill(session);
    const loaded = [...resumed.messages];
    await resumed.sync(loaded);
    const other = await world.create(voice);
    await expect(other.sync([...loaded, user("three")])).rejects.toMatchObject({ code: "SYNC_FOREIGN" });
    expect(other.entries).toEqual([]);
  });

  test("R14 e, f: killed with open calls, the array that was loaded goes on with a prompt: nothing twice, nothing made up recorded as said", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question"), ...calls("a", "b"), result("a", "A")];
    await session.sync(array);
    const resumed = await world.kill(session);
    const loaded: Made[] = [...clone([...resumed.messages]), user("what happened?")];
    expect(await resumed.sync(loaded)).toMatchObject({ appended: { length: 1 }, epoch: false });
    expect(said(resumed.entries)).toEqual([...array, loaded.at(-1)]);
    expect(resumed.turn?.number).toBe(2);
    loaded.push(...says("it died"));
    await resumed.sync(loaded);
    expect(said(resumed.entries)).toHaveLength(array.length + 2);
    const next = await world.kill(resumed);
    // What the model was asked with is what is shown ever after (R1).
    expect(voice.atoms(next.messages)).toEqual(
      voice.atoms(voice.dialect.arrange(resumed.entries, { changedAt: null, next: "prompt" })),
    );
    expect(text(next.messages)).not.toContain("interrupted");
    expect(judged(voice, next.messages)).toEqual([]);
    expect(await next.sync([...next.messages])).toEqual({ appended: [], epoch: false });
  });

  test("R14 e: killed with open calls, the results come from the array: they count, and nothing is made up", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question"), ...calls("a", "b")];
    await session.sync(array);
    const resumed = await world.kill(session);
    const own = clone(array);
    own.push(result("a", "A"));
    await resumed.sync(own);
    own.push(result("b", "B"));
    await resumed.sync(own);
    own.push(...says("done"));
    await resumed.sync(own);
    expect(resumed.turn).toBeNull();
    expect(resumed.entries.map(({ message }) => message)).toEqual(own);
    expect(resumed.entries.every(({ turn, synthetic, late }) => turn === 1 && !synthetic && !late)).toBe(true);
  });

  test("R14 e: after an abort, results that the application makes up itself go along with the next prompt", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question"), ...calls("a")];
    await session.sync(array);
    await session.turn!.abort({ by: "user" });
    array.push(result("a", "cancelled"), user("something else"));
    await session.sync(array);
    expect(session.turn?.number).toBe(2);
    expect(session.entries.map(({ message }) => message)).toEqual(array);
    expect(voice.dialect.text(session.turn!.prompt.message)).toBe("something else");
    expect(judged(voice, session.messages)).toEqual([]);
  });

  test("R14 e: words that had been streamed when the process died are kept for people", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("question"), ...says("Hel")], { open: true });
    await session.flush();
    const resumed = await world.kill(session);
    const loaded = [...resumed.messages, user("again")];
    await resumed.sync(loaded);
    expect(resumed.entries[1]).toMatchObject({ synthetic: "draft", incomplete: true });
    expect(text([resumed.entries[1]!.message])).toBe("Hel");
    const atoms = voice.atoms(loaded);
    expect(voice.atoms(resumed.messages)).toEqual(atoms);
  });

  test("R14 e: items of one response that come one by one: the turn goes on, though it seemed to be over", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question"), ...says("let me see")];
    await session.sync(array);
    expect(session.turn).toBeNull();
    array.push(...calls("a"));
    await session.sync(array);
    expect(session.turn?.number).toBe(1);
    expect((await world.kill(session)).interruption?.resumes).toBe(0);
    array.push(result("a", "A"), ...says("done"));
    await session.sync(array);
    expect(session.turn).toBeNull();
    expect(said(session.entries)).toEqual(array);
  });

  test("R14 f: what turn.append recorded meanwhile is known", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question")];
    await session.sync(array);
    const answer = calls("a");
    await session.turn!.append(answer);
    const outcome = await session.turn!.tool("a", () => "A");
    expect(outcome).toEqual({ value: "A" });
    array.push(...clone(answer), result("a", "A"));
    expect(await session.sync(array)).toEqual({ appended: [], epoch: false });
    expect(session.entries.map(({ message }) => message)).toEqual(array);
    const more = calls("b");
    await session.turn!.append(more);
    await session.turn!.tool("b", () => "a long result");
    array.push(...more, result("b", "in short"));
    // The result in a message takes the place of the outcome that was recorded before (R6).
    expect((await session.sync(array)).appended).toHaveLength(1);
    expect(session.entries.map(({ message }) => message)).toEqual(array);
  });

  test("R14 e, f: killed with open calls, the model goes on with the array that was loaded: what it was shown stays", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("question"), ...calls("a", "b"), result("a", "A")]);
    const resumed = await world.kill(session);
    const loaded = [...resumed.messages, ...says("the second died")];
    await resumed.sync(loaded);
    expect(voice.atoms(resumed.messages)).toEqual(voice.atoms(loaded));
    expect(resumed.entries.filter(({ synthetic }) => synthetic !== undefined)).toHaveLength(1);
    expect(resumed.entries.at(-1)!.turn).toBe(1);
  });

  test("R14 f: an array that was loaded, went on and was stored by the application is known in the next process", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("question"), ...calls("a", "b"), result("a", "A")]);
    const second = await world.kill(session);
    const stored = clone([...second.messages, user("what happened?"), user("tell me"), ...says("it died")]);
    await second.sync(stored);
    const third = await world.kill(second);
    const known = [...clone(stored), user("and?")];
    expect((await third.sync(known, { rewrite: "error" })).appended).toHaveLength(1);
    expect(said(third.entries)).toHaveLength(said(second.entries).length + 1);
  });

  test("R14 f: an array of raw messages need not hold what Holdfast made up", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("question"), ...calls("a", "b"), result("a", "A")];
    await session.sync(array);
    const second = await world.kill(session);
    const more = [user("what happened?"), ...says("it died")];
    const turn = await second.startTurn(more[0]);
    await turn.append(more[1]);
    await turn.end();
    const third = await world.kill(second);
    const known = clone([...array, ...more]);
    expect(await third.sync(known, { rewrite: "error" })).toEqual({ appended: [], epoch: false });
  });

  test("R14 g: what was recorded beside the array stays with what it stands behind", async () => {
    await using world = new World();
    const first = await world.create(voice);
    await first.sync([user("0"), ...says("cut o")], { open: true });
    await first.flush();
    const session = await world.kill(first);
    const array = [...session.messages, user("1"), ...calls("a")];
    await session.sync(array);
    await session.turn!.tool("a", () => "A");
    expect(session.entries).toHaveLength(5);
    await session.sync([system("be kind"), ...array]);
    expect(session.entries).toHaveLength(6);
    expect(session.entries.filter(({ synthetic }) => synthetic === "draft")).toHaveLength(1);
    expect(voice.dialect.results(session.messages.at(-1))).toMatchObject([{ call: "a" }]);
    await session.sync([user("in short"), array.at(-1)]);
    expect(session.entries).toHaveLength(3);
    expect(JSON.stringify(session.messages)).toContain('"A"');
  });

  test("R14 g: while a message grows, it is not part of what replaces the past", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("1"), ...calls("a"), result("a", "A")]);
    const short = [user("in short")];
    expect((await session.sync([...short, ...says("He")], { open: true })).epoch).toBe(true);
    expect(session.entries.map(({ message }) => message)).toEqual(short);
    await session.flush();
    expect((await world.kill(session)).interruption?.draft?.text).toBe("He");
    await session.sync([...short, ...says("Hello")]);
    expect(session.entries).toHaveLength(2);
    expect(session.turn).toBeNull();
  });

  test("R14 g: another conversation in the place of one that is over begins with its prompt", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("1"), ...says("one")]);
    const other = [system("be brief"), user("2")];
    expect(await session.sync(other)).toMatchObject({ appended: { length: 2 }, epoch: true });
    expect(session.entries.map(({ turn }) => turn)).toEqual([2, 2]);
    expect(voice.dialect.text(session.turn!.prompt.message)).toBe("2");
  });

  test("R14 g: results that the array has moved away from their calls are recorded all the same", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...calls("a"), result("a", "A"), ...says("one"), user("2")];
    await session.sync(array);
    const behind = [array[0], array[1], array[3], array[2], array[4]];
    const before = [array[0], array[2], array[1], array[3], array[4]];
    for (const moved of [behind, before]) {
      // No provider takes such an array: what matters is that nothing is lost, and nothing there twice.
      await session.sync(moved);
      const sorted = (messages: Made[]): string[] => messages.map((message) => JSON.stringify(message)).sort();
      expect(sorted(said(session.entries))).toEqual(sorted(moved));
      expect(await session.sync(moved)).toEqual({ appended: [], epoch: false });
      expect(judged(voice, session.messages)).toEqual([]);
    }
  });

  test("what the application does to its array while a sync runs changes nothing of it", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...says("one"), user("2"), ...says("two")];
    const whole = [...array];
    const done = session.sync(array);
    await Promise.resolve();
    await Promise.resolve();
    array.splice(0);
    await done;
    expect(said(session.entries)).toEqual(whole);
  });

  test("R14 g: compaction by the host is one new epoch; what is kept keeps its entries", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...says("one"), user("2"), ...calls("a"), result("a", "A"), ...says("two")];
    await session.sync(array);
    await session.patch(session.entries[2]!.id, { starred: true });
    const before = session.entries;
    const short = [user("in short"), ...clone(array.slice(2))];
    const done = await session.sync(short);
    expect(done).toMatchObject({ epoch: true, appended: { length: 1 } });
    expect(session.entries.slice(1).map(({ id }) => id)).toEqual(before.slice(2).map(({ id }) => id));
    expect(session.entries[1]!.metadata).toEqual({ starred: true });
    expect(session.entries.map(({ message }) => message)).toEqual(short);
    short.push(user("3"), ...says("three"));
    expect(await session.sync(short)).toMatchObject({ epoch: false, appended: { length: 2 } });
    const resumed = await world.kill(session);
    expect(said(resumed.entries)).toEqual(short);
    expect(judged(voice, resumed.messages)).toEqual([]);
  });

  test("R14 g: in the middle of a turn", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...calls("a"), result("a", "A"), ...calls("b")];
    await session.sync(array);
    const short = [user("in short"), array.at(-1)];
    expect((await session.sync(short)).epoch).toBe(true);
    expect(session.turn?.number).toBe(1);
    short.push(result("b", "B"), ...says("done"));
    await session.sync(short);
    expect(session.turn).toBeNull();
    expect(session.entries.map(({ message }) => message)).toEqual(short);
  });

  test("R14 g: rewind, another prompt, clear", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...says("one"), user("2"), ...calls("a")];
    await session.sync(array);
    expect(await session.sync(array.slice(0, 2))).toEqual({ appended: [], epoch: true });
    expect(session.turn).toBeNull();
    expect(session.interruption).toBeNull();
    expect(said(session.entries)).toEqual(array.slice(0, 2));
    await session.undo();
    expect(said(session.entries)).toEqual(array);
    const other = [...array.slice(0, 2), user("another 2")];
    expect(await session.sync(other)).toMatchObject({ appended: { length: 1 }, epoch: true });
    expect(said(session.entries)).toEqual(other);
    expect(session.turn?.number).toBe(3);
    expect(await session.sync([])).toEqual({ appended: [], epoch: true });
    expect(session.messages).toEqual([]);
    expect(await session.sync([user("fresh")])).toMatchObject({ appended: { length: 1 }, epoch: false });
    expect(session.turn?.number).toBe(4);
  });

  test("R14 g: a message in the middle that was changed, and one that was written into after it was recorded", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...calls("a"), result("a", "a long result"), ...says("one")];
    await session.sync(array);
    const ids = session.entries.map(({ id }) => id);
    const pruned = [...array];
    pruned[2] = result("a", "[cleared]");
    expect(await session.sync(pruned)).toMatchObject({ epoch: false, appended: { length: 1 } });
    expect(inArray(session.entries)).toEqual(pruned);
    expect(
      session.entries.map(({ id }) => ids.indexOf(id)),
      "the original stays, marked",
    ).toEqual([0, 1, -1, 2, 3]);
    expect(session.entries[3]!.replacedBy).toBe(session.entries[2]!.id);
    expect(judged(voice, session.messages)).toEqual([]);
    const killed = await world.kill(session);
    expect(await killed.sync(clone(pruned), { rewrite: "error" })).toEqual({ appended: [], epoch: false });
    const grown = says("one and more")[0];
    for (const name of Object.keys(pruned[3])) delete pruned[3][name];
    Object.assign(pruned[3], grown);
    expect((await session.sync(pruned)).epoch).toBe(true);
    expect(
      session.entries.map(({ message }) => message),
      "nobody needs the original in the new epoch",
    ).toEqual([...pruned.slice(0, 3), grown]);
    expect(session.turn).toBeNull();
  });

  test("R14 g: a member that the model is not shown is recorded too, also when the application has looked at the messages", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("question"), ...says("answer"), user("more")]);
    expect(session.messages).toHaveLength(3);
    const array = [{ ...user("question"), note: 1 }, ...says("answer"), { ...user("more"), note: 2 }];
    await session.sync(array);
    expect(inArray((await world.kill(session)).entries)).toMatchObject([{ note: 1 }, {}, { note: 2 }]);
  });

  test("R14 f: what the session shows behind an edit or a hidden message is known, and no change of the array", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("one"), ...says("first"), user("two"), ...says("second")]);
    const array = [...session.messages, user("three")];
    await session.sync(array);
    await session.edit([session.entries[0]!.id], [user("one, in short")], { reason: "prune", now: true });
    const pruned = [...session.messages, ...says("third")];
    expect(await session.sync(pruned, { rewrite: "error" })).toMatchObject({ appended: { length: 1 }, epoch: false });
    const two = session.entries.find(({ message }) => voice.dialect.text(message) === "two")!;
    await session.patch(two.id, { hiddenFromModel: true });
    await session.sync([...session.messages, user("four")], { rewrite: "error" });
    const hidden = [...session.messages, ...says("fourth")];
    expect(text(hidden)).not.toContain("two");
    expect(await session.sync(hidden, { rewrite: "error" })).toMatchObject({ appended: { length: 1 }, epoch: false });
    const all = ["one, in short", "one", "first", "two", "second", "three", "third", "four", "fourth"];
    expect(text(session.entries.map(({ message }) => message))).toBe(all.join("|"));
  });

  test("R14 g: made-up results that are kept stay made up (P3)", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("0"), ...says("zero"), user("1"), ...calls("a", "b"), result("a", "A")]);
    const resumed = await world.kill(session);
    const loaded = [...resumed.messages, user("2"), ...says("two")];
    await resumed.sync(loaded);
    const made = resumed.entries.filter(({ synthetic }) => synthetic !== undefined);
    expect(made).toHaveLength(1);
    expect((await resumed.sync([user("in short"), ...clone(loaded.slice(2))])).epoch).toBe(true);
    expect(resumed.entries.filter(({ synthetic }) => synthetic !== undefined)).toMatchObject(
      made.map(({ id, synthetic, message }) => ({ id, synthetic, message })),
    );
    expect(judged(voice, resumed.messages)).toEqual([]);
  });

  test("R14 g: a step that the array tears apart is recorded anew", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const two = [...says("first half"), ...says("second half")];
    const array = [user("1"), ...two, user("2"), ...calls("a"), result("a", "A"), ...says("done")];
    await session.sync(array);
    const ids = session.entries.map(({ id }) => id);
    const torn = [array[0], array[2], array[3], array[6]];
    expect((await session.sync(torn)).epoch).toBe(true);
    expect(said(session.entries)).toEqual(torn);
    const kept = session.entries.map(({ id }) => ids.indexOf(id));
    expect(kept).toEqual([0, -1, 3, 6]);
    expect(await session.sync(clone(torn))).toEqual({ appended: [], epoch: false });
    expect(judged(voice, session.messages)).toEqual([]);
  });

  test("R14 g: an agent that forgot to load the conversation does not clear it, unless it says so", async () => {
    await using world = new World();
    const session = await world.create(voice);
    await session.sync([user("1"), ...says("one")]);
    const again = await world.kill(session);
    const { messages } = again;
    const strange = [user("hello?"), ...says("who are you?")];
    for (const array of [strange, []]) {
      await expect(again.sync(array)).rejects.toMatchObject({ code: "SYNC_REWRITE", facts: { index: 0 } });
      expect(again.messages).toEqual(messages);
    }
    expect(await again.sync(strange, { rewrite: "epoch" })).toMatchObject({ epoch: true });
    expect(said(again.entries)).toEqual(strange);
    expect(await again.sync([]), "known by now").toMatchObject({ epoch: true });
  });

  test("R14 g: the first sync of a process drops nothing that is recorded, unless it says so", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...calls("a"), result("a", "A"), ...says("one"), user("2"), ...says("two")];
    await session.sync(array);
    const forgotten: Made[][] = [
      [user("1")],
      [user("1"), ...says("what can I do?")],
      array.slice(0, -1),
      array.slice(0, 4),
      [...array.slice(0, 4), user("3")],
      [user("in short"), ...array.slice(-2)],
      [array[0], ...array.slice(4)],
      [...array.slice(0, 2), result("a", "[cleared]"), ...array.slice(3)],
      [...array.slice(1), user("3")],
    ];
    for (const strange of forgotten) {
      const again = await world.kill(session);
      const { messages } = again;
      const refused = again.sync(clone(strange));
      await expect(refused).rejects.toMatchObject({ code: "SYNC_REWRITE", facts: { session: session.id } });
      await refused.catch(({ facts }) => expect(facts.dropped).toBeGreaterThan(0));
      expect(again.messages).toEqual(messages);
      expect(await again.sync(clone([...messages]), { rewrite: "error" })).toEqual({ appended: [], epoch: false });
      await again.sync(clone(strange));
      expect(inArray(again.entries), "loaded once, it may be changed").toEqual(strange);
      const meant = await world.kill(session);
      await meant.sync(clone(strange), { rewrite: "epoch" });
      expect(inArray(meant.entries)).toEqual(strange);
    }
    const more = [system("be kind"), ...clone(array), user("3")];
    expect(await (await world.kill(session)).sync(more), "it drops nothing").toMatchObject({ appended: { length: 2 } });
  });

  test("R14 g: of a fork, too", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...says("one"), user("2"), ...says("two")];
    await session.sync(array);
    const fork = await world.store.fork<Made>(session.id);
    await expect(fork.sync(clone(array.slice(0, 2)))).rejects.toMatchObject({ code: "SYNC_REWRITE" });
    expect(await fork.sync(clone(array))).toEqual({ appended: [], epoch: false });
  });

  test('R14 g: with rewrite: "error" nothing is recorded, and the place is named', async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [user("1"), ...says("one"), user("2")];
    await session.sync(array);
    const before = session.entries;
    const changed = [array[0], says("ONE")[0], array[2]];
    const refused = { code: "SYNC_REWRITE", facts: { session: session.id, index: 1 } };
    await expect(session.sync(changed, { rewrite: "error" })).rejects.toMatchObject(refused);
    await expect((await world.kill(session)).sync(changed, { rewrite: "error" })).rejects.toMatchObject(refused);
    await expect(session.sync([], { rewrite: "error" })).rejects.toMatchObject({ facts: { index: 0 } });
    expect(session.entries).toEqual(before);
    expect(
      (
        await session.sync(
          array.map((message) => marked(voice, message)),
          { rewrite: "error" },
        )
      ).appended,
    ).toEqual([]);
  });

  test("R14 g: an array that lost its beginning over a restart", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const two = [user("2"), ...calls("a", "b"), result("a", "A"), result("b", "B"), ...says("two")];
    await session.sync([user("1"), ...says("one"), ...two]);
    const ids = session.entries.map(({ id }) => id);
    const resumed = await world.kill(session);
    await resumed.sync([user("in short"), ...clone(two), user("3")], { rewrite: "epoch" });
    expect(resumed.entries.slice(1, -1).map(({ id }) => id)).toEqual(ids.slice(2));
    expect(resumed.turn?.number).toBe(3);
  });

  test("R14 h: the items of one response in one sync are one step", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const response = step({
      reasoning: "signed",
      text: "let me see",
      calls: [{ id: "a", name: "read", input: "whole" }],
    });
    const array = [user("1"), ...response];
    await session.sync(array);
    expect(new Set(stepsOf(session).slice(1)).size).toBe(1);
    await session.sync([...array, result("a", "A"), ...step({ reasoning: "signed", text: "do" })], { open: true });
    expect(session.entries).toHaveLength(array.length + 1);
  });

  test("R14 h: redacted messages are known by what is stored of them, also in the next process", async () => {
    await using world = new World({ redact: (words) => words.replaceAll("secret", "[gone]") });
    const session = await world.create(voice);
    const array = [user("the secret is 1"), ...says("a secret?"), user("yes")];
    await session.sync(array);
    expect(JSON.stringify(session.entries)).not.toContain("secret");
    expect(await session.sync(clone(array))).toEqual({ appended: [], epoch: false });
    const resumed = await world.kill(session);
    expect(await resumed.sync(clone(array))).toEqual({ appended: [], epoch: false });
    expect((await resumed.sync([...clone(array), ...says("my secret")])).appended).toHaveLength(1);
  });

  test("R14 i: the disk is full in the middle: the next sync goes on where this one stopped", async () => {
    for (let nth = 1; nth < 12; nth++) {
      using here = place();
      const count = { left: 0 };
      const disk = fullAt(count);
      const store = await openStoreWith((given) => openFolderStore(here.path, { ...given, disk }));
      const session = await store.create<Made>({ dialect: voice.dialect as Made });
      const array = [user("1"), ...says("one"), user("2"), ...calls("a"), result("a", "A"), ...says("two")];
      await session.sync([array[0], ...says("on")], { open: true });
      count.left = nth;
      const appended: string[] = [];
      for (let tries = 0; tries < 3; tries++) {
        await session.sync(array).then(
          (done) => appended.push(...done.appended),
          (error: unknown) => expect(error).toMatchObject({ code: "STORE_FULL" }),
        );
      }
      expect(said(session.entries)).toEqual(array);
      expect(session.turn).toBeNull();
      await store.close();
      if (count.left > 0) return;
    }
    throw new Error("the disk never stopped failing");
  });

  test("a greeting before any prompt, and what only the system has said", async () => {
    await using world = new World();
    const session = await world.create(voice);
    const array = [system("be kind")];
    expect(await session.sync(array)).toEqual({ appended: [], epoch: false });
    array.push(...says("How can I help?"));
    expect((await session.sync(array)).appended).toHaveLength(array.length);
    array.push(user("like this"), ...says("fine"));
    expect(await session.sync(array)).toMatchObject({ appended: { length: 2 }, epoch: false });
    expect(said(session.entries)).toEqual(array);
    expect(await (await world.kill(session)).sync(clone(array))).toEqual({ appended: [], epoch: false });
  });
});

test("calls are serialised: each sees what the one before recorded", async () => {
  await using store = await openStore("memory:");
  const session = await store.create<Made>({ dialect: "openai-chat" });
  const array: Made[] = [];
  const done: Promise<{ appended: string[] }>[] = [];
  for (const content of ["1", "2", "3"]) {
    array.push({ role: "user", content }, { role: "assistant", content });
    done.push(session.sync([...array]));
  }
  const counts = (await Promise.all(done)).map(({ appended }) => appended.length);
  expect(counts).toEqual([2, 2, 2]);
  expect(said(session.entries)).toEqual(array);
});

test("options that cannot be meant are refused, and nothing is recorded: a misspelt `rewrite` would protect nothing", async () => {
  await using world = new World();
  const [, voice] = spoken[0]!;
  const session = await world.create(voice);
  const array = [voice.user("hello")];
  for (const options of [{ rewrite: "Error" }, { rewrite: null }] as Made[]) {
    await expect(session.sync(array, options)).rejects.toMatchObject({ code: "RECORD_INVALID" });
  }
  const unreadable = {
    get open(): boolean {
      throw new Error("no");
    },
  };
  await expect(session.sync(array, unreadable)).rejects.toMatchObject({ code: "RECORD_NOT_JSON" });
  expect(session.entries).toEqual([]);
});

test("a session that was closed says so", async () => {
  await using store = await openStore("memory:");
  const session = await store.create<Made>({ dialect: "openai-chat" });
  await session.close();
  await expect(session.sync([])).rejects.toMatchObject({ code: "SESSION_CLOSED" });
});
