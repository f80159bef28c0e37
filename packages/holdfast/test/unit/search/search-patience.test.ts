import { expect, test } from "vitest";
import { IndexFailure, patiently } from "../../../src/search/base.ts";

const failed = (errcode: number): Error => Object.assign(new Error("SQLite failed"), { errcode });
const BUSY = 5;
const CORRUPT = 11;

/** Tables of a store that speaks over a socket answer later, and fail later. */
const later = async <T>(answer: T | Error): Promise<T> => {
  await null;
  if (answer instanceof Error) throw answer;
  return answer;
};

test("an index that is busy is asked again, also where the answer comes later", async () => {
  for (const way of [<T>(answer: T | Error) => later(answer), <T>(answer: T | Error) => atOnce(answer)]) {
    const answers = [failed(BUSY), failed(BUSY), "found"];
    expect(await patiently(60_000, () => way(answers.shift()!))).toBe("found");
    expect(answers).toEqual([]);
  }
});

test("any other failure of the index says so, also where it comes later; what is not the index's stays what it is", async () => {
  await expect(patiently(60_000, () => later(failed(CORRUPT)))).rejects.toMatchObject({ why: "content" });
  await expect(patiently(60_000, () => later(failed(CORRUPT)))).rejects.toBeInstanceOf(IndexFailure);
  await expect(patiently(0, () => later(failed(BUSY)))).rejects.toMatchObject({ why: "busy" });
  const bug = new TypeError("a bug");
  await expect(patiently(60_000, () => later(bug))).rejects.toBe(bug);
});

function atOnce<T>(answer: T | Error): T {
  if (answer instanceof Error) throw answer;
  return answer;
}
