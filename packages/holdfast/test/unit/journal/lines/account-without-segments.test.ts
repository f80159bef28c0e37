import { expect, test } from "vitest";
import { Account } from "../../../../src/journal/lines/account.ts";

test("P9: where no segment is known, damage is reported in the first", () => {
  const account = new Account([], { keep: true });
  account.add([{ seq: 1, bytes: Buffer.from("rot") }]);
  expect(account.damaged).toEqual([{ segment: "000001", offset: 0, bytes: 4, seq: 1, why: "corrupt" }]);
  expect(account.next).toBe(2);
});
