import { conformance } from "@holdfast/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { subjectNamed, subjectNames } from "../workers/subjects.ts";
import { isInstalled, needsWorkerd, TestWorker } from "../workers/workerd.ts";

let worker: TestWorker | undefined;

beforeAll(async () => {
  if (!isInstalled) return;
  worker = await TestWorker.create("conformance-worker.ts");
  await worker.start();
});
afterAll(() => worker?.remove());

describe.each(subjectNames)("conformance in workerd of the %s store", { concurrent: true }, (subject) => {
  const cases = conformance(subjectNamed(subject, null)).filter(({ skipped }) => !skipped);
  test.for(cases)("$name", async ({ name }, context) => {
    needsWorkerd(context);
    const answer = await worker!.text(`/?${new URLSearchParams({ subject, case: name })}`);
    expect(answer, worker!.stderr).toBe("passed");
  });
});
