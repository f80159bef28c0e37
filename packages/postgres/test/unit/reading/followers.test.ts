import { crcIn, Wake } from "holdfast/internal";
import { expect, test } from "vitest";
import { type FollowSource, followSession, PostgresFollowers } from "../../../src/reading/follow.ts";

/** One that counts how often it was woken. */
class CountingWake extends Wake {
  times = 0;

  override readonly up = (): void => {
    this.times++;
  };
}

test("the server is asked for news of a session from its first follower until its last one leaves", () => {
  const told: string[] = [];
  const followers = new PostgresFollowers((id, isFollowed) => told.push(`${id} ${isFollowed}`));
  const [one, two, other] = [new CountingWake(), new CountingWake(), new CountingWake()];
  followers.add("a", one);
  followers.add("a", two);
  followers.add("b", other);
  expect(told).toEqual(["a true", "b true"]);
  followers.remove("a", one);
  // Twice, and one that never came: nobody has left.
  followers.remove("a", one);
  followers.remove("a", other);
  followers.remove("c", other);
  expect(told).toEqual(["a true", "b true"]);
  followers.remove("a", two);
  expect(told).toEqual(["a true", "b true", "a false"]);
  followers.add("a", two);
  expect(told).toEqual(["a true", "b true", "a false", "a true"]);
});

test("news of a session wake its followers; news of any, all", () => {
  const followers = new PostgresFollowers(() => undefined);
  const [one, two, other, gone] = [new CountingWake(), new CountingWake(), new CountingWake(), new CountingWake()];
  followers.add("a", one);
  followers.add("a", two);
  followers.add("a", gone);
  followers.add("b", other);
  followers.remove("a", gone);
  const times = (): number[] => [one, two, other, gone].map((wake) => wake.times);
  followers.wake("a");
  expect(times()).toEqual([1, 1, 0, 0]);
  followers.wake("c");
  expect(times()).toEqual([1, 1, 0, 0]);
  followers.wake(null);
  expect(times()).toEqual([2, 2, 1, 0]);
});

test.each([
  ["lacks it", 3, "a"],
  ["has another one in its place, and more", 7, "b"],
])("a follower that begins after a cursor notices that the server %s", async (_, head, text) => {
  const id = "s";
  const line = (content: string): Buffer =>
    Buffer.from(`{"seq":5,"kind":"note","crc":"${content.repeat(8)}"}`.padStart(60));
  const followers = new PostgresFollowers(() => undefined);
  let now = { place: "p", head: 5, line: line("a") };
  let asked = 0;
  const over = new AbortController();
  const source = {
    followers,
    acknowledged: () => Number.POSITIVE_INFINITY,
    sessions: {
      find: async () => {
        if (++asked === 9) over.abort();
        return now;
      },
    },
    lines: {
      one: async () => now.line,
      read: async function* (_place: string, from: number) {
        yield [{ seq: from, bytes: now.line }];
      },
    },
  } as unknown as FollowSource;
  const following = followSession(source, id, { after: `5-${crcIn(now.line)}`, signal: over.signal }).next();
  // Until it has looked, and found nothing new.
  following.catch(() => undefined);
  while (asked < 2) await new Promise(setImmediate);
  now = { place: "p", head, line: line(text) };
  followers.wake(id);
  await expect(following).rejects.toMatchObject({ code: "CURSOR_STALE" });
});
