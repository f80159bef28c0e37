import { conformance, memorySubject } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import { subjectOnDisk } from "../conformance/on-disk.ts";
import type { CaseEnd } from "./conformance.ts";
import { needsRuntime, otherRuntimes, run } from "./run.ts";

const subjects = [subjectOnDisk("folder", "folder"), subjectOnDisk("sqlite", "sqlite"), memorySubject()];

// On Node 24 the layer `conformance` runs it.
describe.each(otherRuntimes)("$name: the conformance suite, with the built package", (runtime) => {
  test.for(subjects)("$name store: every case passes, and the process ends", async (subject, context) => {
    needsRuntime(context, runtime);
    const args = [subject.name, JSON.stringify(runtime.command)];
    const { code, signal, stdout, stderr } = await run(runtime, "conformance.ts", args);
    const ends = stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as CaseEnd);
    expect(ends.filter(({ failure }) => failure !== undefined)).toEqual([]);
    expect(
      ends.map(({ name, skipped }) => ({ name, skipped })),
      stderr,
    ).toEqual(conformance(subject).map(({ name, skipped }) => ({ name, skipped })));
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: "" });
  });
});
