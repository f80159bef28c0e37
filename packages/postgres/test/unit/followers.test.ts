import { Wake } from "holdfast/store";
import { expect, test } from "vitest";
import { PostgresFollowers } from "../../src/follow.ts";

/** One that counts how often it was woken. */
class Counted extends Wake {
  times = 0;

  override readonly up = (): void => {
    this.times++;
  };
}

test("the server is asked for news of a session from its first follower until its last one leaves", () => {
  const told: string[] = [];
  const followers = new PostgresFollowers((id, isFollowed) => told.push(`${id} ${isFollowed}`));
  const [one, two, other] = [new Counted(), new Counted(), new Counted()];
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
  const [one, two, other, gone] = [new Counted(), new Counted(), new Counted(), new Counted()];
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
