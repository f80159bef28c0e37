import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { format } from "../../../../src/agents/pi/format.ts";
import { pi } from "../../../../src/agents/pi/index.ts";
import { fieldsOf, listIn } from "../../../../src/contract/shapes.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";
import {
  describeFix,
  describeLineAgent,
  kindsIn,
  type LineAgentSuite,
  recordsOf,
  scratchFolder,
  sessionsIn,
} from "../agent-suite.ts";
import { LINE_DAMAGE, lineChanged, lineGone, lineMoved, linesDamage, lineTwice } from "../line-damage.ts";

const messageOf = (line: string) => fieldsOf(fieldsOf(JSON.parse(line))["message"]);
const isResult = (line: string): boolean => messageOf(line)["role"] === "toolResult";
const callsIn = (line: string): unknown[] =>
  listIn(messageOf(line)["content"]).flatMap((block) =>
    fieldsOf(block)["type"] === "toolCall" ? [fieldsOf(block)["id"]] : [],
  );

const suite: LineAgentSuite = {
  agent: pi,
  lines: format,
  format: "pi",
  seed: seedOf(import.meta.url, "unit"),
  damages: [
    ...LINE_DAMAGE,
    lineGone("a record is gone", ["lost-record"], () => true),
    lineTwice(() => true),
    lineMoved("a result before its call", ["result-before-call"], (lines) =>
      lines.flatMap((line, second) => {
        const first = lines.findIndex(
          (each) => isResult(line) && callsIn(each).includes(messageOf(line)["toolCallId"]),
        );
        return first < 0 ? [] : [[first, second] as const];
      }),
    ),
    lineChanged("a call with null input", ["bad-tool-input"], (line) =>
      callsIn(line).length === 0
        ? null
        : line.replace(/"arguments":\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}/, '"arguments":null'),
    ),
    linesDamage("another entry with the same id", ["doubled-id"], (lines, random) => {
      const n = 2 + random.below(lines.length - 2);
      const id = /"id":"([0-9a-f]{8})"/.exec(lines[n - 1]!)![1]!;
      return { lines: lines.toSpliced(n, 1, lines[n]!.replace(/("id":")[0-9a-f]{8}(",)/, `$1${id}$2`)), lost: [n] };
    }),
  ],
};
describeLineAgent(suite);
describeFix(suite);

/** The session of a story, with each line changed. */
async function kindsAfter(story: string, change: (entry: Record<string, unknown>, n: number) => unknown) {
  using scratch = scratchFolder();
  const { home } = placeRecording(listRecordings("pi").find((each) => each.story === story)!, scratch.folder);
  const [session] = sessionsIn(pi, home);
  const lines = readFileSync(session!.path, "utf8").trimEnd().split("\n");
  const changed = lines.map((line, n) => `${JSON.stringify(change(JSON.parse(line), n))}\n`);
  writeFileSync(session!.path, changed.join(""));
  const diagnosis = await diagnose(pi, session!);
  return { kinds: kindsIn(diagnosis), units: diagnosis.units, records: await recordsOf(pi, session!) };
}

describe("pi: versions and folders", () => {
  for (const version of [undefined, 1, 2, 3])
    test(`version ${version ?? "1, which says none"}: healthy, and its units are found`, async () => {
      const { kinds, units, records } = await kindsAfter("work", ({ id, parentId, ...entry }) => {
        if (entry["type"] === "session") return { ...entry, id, ...(version === undefined ? {} : { version }) };
        return (version ?? 1) < 2 ? entry : { id, parentId, ...entry };
      });
      expect(kinds).toEqual([]);
      expect(units).toEqual({ user: 5, reasoning: 2, assistant: 9, call: 6, result: 6 });
      expect(records.filter(({ kind }) => kind === "unknown")).toEqual([]);
    });

  test("a version that nobody has seen is said", async () => {
    const { kinds } = await kindsAfter("talk", (entry, n) => (n === 0 ? { ...entry, version: 4 } : entry));
    expect(kinds).toEqual(["unknown-version"]);
  });

  test("an answer that broke off has no calls", async () => {
    const { kinds } = await kindsAfter("killed-resumed", (entry) =>
      entry["type"] === "message"
        ? { ...entry, message: { ...fieldsOf(entry["message"]), stopReason: "aborted" } }
        : entry,
    );
    // The results of calls that ran are still there.
    expect(new Set(kinds)).toEqual(new Set(["result-without-call"]));
  });

  test("a session in the folder of another project", async () => {
    using scratch = scratchFolder();
    const { home } = placeRecording(listRecordings("pi").find(({ story }) => story === "talk")!, scratch.folder);
    const [session] = sessionsIn(pi, home);
    const folder = join(dirname(dirname(session!.path)), "--another--");
    mkdirSync(folder);
    renameSync(session!.path, join(folder, basename(session!.path)));
    const [moved] = sessionsIn(pi, home);
    expect(kindsIn(await diagnose(pi, moved!))).toEqual(["wrong-folder"]);
  });
});
