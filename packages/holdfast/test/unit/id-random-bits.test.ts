import { expect, test } from "vitest";
import { newId } from "../../src/journal/id.ts";

test("every bit of an id is random, besides its time, version and variant", () => {
  const ids = Array.from({ length: 500 }, () => BigInt(`0x${newId(0).replaceAll("-", "")}`));
  const everSet = ids.reduce((bits, id) => bits | id);
  const alwaysSet = ids.reduce((bits, id) => bits & id);
  expect(everSet.toString(16).padStart(32, "0")).toBe("0000000000007fffbfffffffffffffff");
  expect(alwaysSet.toString(16).padStart(32, "0")).toBe("00000000000070008000000000000000");
});
