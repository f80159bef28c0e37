import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { codex } from "../../../../src/agents/codex/index.ts";
import type { SessionPlace } from "../../../../src/contract/agent.ts";
import { diagnose } from "../../../../src/diagnosis/diagnose.ts";
import { fix } from "../../../../src/fix/fix.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";
import { kindsIn, scratchFolder, sessionsIn } from "../agent-suite.ts";

interface Home {
  readonly home: string;
  readonly session: SessionPlace;
  /** Changes one of the databases. */
  sql(name: "state_5" | "thread_history_1", statement: string): void;
}

/** What is found after the home of the story `work` was changed. */
async function foundAfter(
  change: (home: Home) => void,
  repair?: (session: SessionPlace, home: string) => Promise<void>,
): Promise<string[]> {
  using scratch = scratchFolder();
  const recording = listRecordings("codex").find(({ story }) => story === "work")!;
  const { home } = placeRecording(recording, scratch.folder);
  const [session] = sessionsIn(codex, home);
  change({
    home,
    session: session!,
    sql(name, statement) {
      const database = new DatabaseSync(join(home, `.codex/${name}.sqlite`));
      database.exec(statement);
      database.close();
    },
  });
  await repair?.(session!, home);
  const found = new Set<string>();
  for (const each of sessionsIn(codex, home)) for (const kind of kindsIn(await diagnose(codex, each))) found.add(kind);
  return [...found];
}

/** The rollout, which the index has to its end: the paths in it are longer now than when it was written. */
function projected({ session, sql }: Home): Buffer {
  const bytes = readFileSync(session.path);
  sql("thread_history_1", `update thread_history_projection_state set next_rollout_byte_offset = ${bytes.length}`);
  return bytes;
}

const LINE = `{"timestamp":"2026-11-19T21:00:00.000Z","ordinal":92,"type":"event_msg","payload":{"type":"token_count"}}\n`;

describe("Codex: its indexes", () => {
  const cases: readonly [name: string, found: readonly string[], change: (home: Home) => void][] = [
    ["nothing is wrong", [], () => undefined],
    ["there are none", [], ({ home }) => rmSync(join(home, ".codex/state_5.sqlite"))],
    ["the row of a thread is gone", ["index-missing"], ({ sql }) => sql("state_5", "delete from threads")],
    [
      "rows are still being made",
      [],
      ({ sql }) => sql("state_5", "delete from threads; update backfill_state set status = 'running'"),
    ],
    [
      "a row names a file that is not there",
      ["index-stale"],
      ({ sql }) => sql("state_5", "update threads set rollout_path = rollout_path || '.old'"),
    ],
    [
      "the folder was moved as a whole",
      [],
      ({ sql }) => sql("state_5", "update threads set rollout_path = '/elsewhere' || rollout_path"),
    ],
    ["a row hides it", ["index-stale"], ({ sql }) => sql("state_5", "update threads set archived = 1")],
    [
      "the projection has the wrong number",
      ["index-wedged"],
      ({ sql }) => sql("thread_history_1", "update thread_history_projection_state set next_rollout_ordinal = 80"),
    ],
    [
      "the projection ends within a line",
      ["index-wedged"],
      ({ sql }) =>
        sql(
          "thread_history_1",
          "update thread_history_projection_state set next_rollout_byte_offset = next_rollout_byte_offset - 5",
        ),
    ],
    ["the projection is behind", [], ({ session }) => appendFileSync(session.path, LINE)],
    [
      "there is no projection yet",
      [],
      ({ sql }) => sql("thread_history_1", "delete from thread_history_projection_state"),
    ],
    [
      "the rollout lost its last lines",
      ["shrunk-file"],
      ({ session }) => {
        const bytes = readFileSync(session.path);
        truncateSync(session.path, bytes.lastIndexOf("\n", bytes.length - 2) + 1);
      },
    ],
    [
      "the rollout is packed",
      [],
      ({ session }) => {
        writeFileSync(`${session.path}.zst`, zstdCompressSync(readFileSync(session.path)));
        rmSync(session.path);
      },
    ],
    [
      "the packed rollout is cut off",
      ["truncated-compression", "shrunk-file"],
      ({ session }) => {
        const packed = zstdCompressSync(readFileSync(session.path));
        writeFileSync(`${session.path}.zst`, packed.subarray(0, packed.length >> 1));
        rmSync(session.path);
      },
    ],
    [
      "a database is damaged",
      ["damaged-database"],
      ({ home }) => writeFileSync(join(home, ".codex/state_5.sqlite"), Buffer.alloc(4_096, "x")),
    ],
  ];
  for (const [name, found, change] of cases)
    test(name, async () => expect((await foundAfter(change)).toSorted()).toEqual(found.toSorted()));

  test("while a rollout is packed, it is one session", async () => {
    using scratch = scratchFolder();
    const recording = listRecordings("codex").find(({ story }) => story === "talk")!;
    const { home } = placeRecording(recording, scratch.folder);
    const [session] = sessionsIn(codex, home);
    writeFileSync(`${session!.path}.zst`, "");
    expect(sessionsIn(codex, home).map(({ path }) => basename(path))).toEqual([basename(session!.path)]);
  });

  const repairs: readonly [name: string, left: readonly string[], change: (home: Home) => void][] = [
    [
      "the projection has the wrong number",
      [],
      ({ sql }) => sql("thread_history_1", "update thread_history_projection_state set next_rollout_ordinal = 80"),
    ],
    [
      "two records on a line",
      [],
      ({ session }) => {
        const lines = readFileSync(session.path, "utf8").split("\n");
        writeFileSync(session.path, [...lines.slice(0, 20), lines[20]! + lines[21]!, ...lines.slice(22)].join("\n"));
      },
    ],
    [
      "the header is gone",
      [],
      (home) => {
        const bytes = projected(home);
        writeFileSync(home.session.path, bytes.subarray(bytes.indexOf("\n") + 1));
      },
    ],
    [
      "the header is cut off",
      [],
      (home) => {
        const bytes = projected(home);
        writeFileSync(home.session.path, Buffer.concat([bytes.subarray(0, 70), bytes.subarray(bytes.indexOf("\n"))]));
      },
    ],
    [
      "a byte of a character is gone",
      [],
      (home) => {
        const bytes = projected(home);
        const at = bytes.findIndex((byte) => byte >= 0xc0);
        writeFileSync(home.session.path, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]));
      },
    ],
    [
      "a result is lost: an event repeats it",
      [],
      (home) => {
        const lines = projected(home).toString("utf8").split("\n");
        const at = lines.findIndex((line) => line.includes('"function_call_output"'));
        writeFileSync(home.session.path, lines.toSpliced(at, 1).join("\n"));
      },
    ],
    [
      "the last record is lost: the index has no item more",
      [],
      (home) => {
        const bytes = projected(home);
        truncateSync(home.session.path, bytes.lastIndexOf("\n", bytes.length - 2) + 1);
      },
    ],
    [
      "the second half is lost: the index has its items",
      [],
      (home) => {
        const bytes = projected(home);
        truncateSync(home.session.path, bytes.lastIndexOf("\n", bytes.length >> 1) + 1);
      },
    ],
    [
      "the file is empty: the index has its items",
      [],
      (home) => {
        projected(home);
        truncateSync(home.session.path, 0);
      },
    ],
    ["the row of a thread is gone", [], ({ sql }) => sql("state_5", "delete from threads")],
    [
      "a row names a file that is not there",
      [],
      ({ sql }) => sql("state_5", "update threads set rollout_path = rollout_path || '.old'"),
    ],
    [
      "a record is lost",
      [],
      ({ session }) => {
        const lines = readFileSync(session.path, "utf8").split("\n");
        // What the model said first: an event repeats it.
        const at = lines.findIndex((line) => line.includes('"role":"assistant"'));
        writeFileSync(session.path, `${lines.toSpliced(at, 1).join("\n")}${" ".repeat(2_000)}\n`);
      },
    ],
  ];
  for (const [name, left, change] of repairs)
    test(`repaired: ${name}`, async () => {
      let before = 0;
      const found = await foundAfter(change, async (session, home) => {
        before = (await diagnose(codex, session)).problems.length;
        await fix(codex, session, { backups: join(home, "backups") });
      });
      expect([before > 0, found]).toEqual([true, left]);
    });

  test("repaired: a packed rollout has two records on a line, and stays packed", async () => {
    using scratch = scratchFolder();
    const { home } = placeRecording(listRecordings("codex").find(({ story }) => story === "talk")!, scratch.folder);
    const [{ path }] = sessionsIn(codex, home) as [SessionPlace];
    const whole = readFileSync(path, "utf8");
    const at = whole.indexOf("\n", whole.length >> 1);
    writeFileSync(`${path}.zst`, zstdCompressSync(Buffer.from(whole.slice(0, at) + whole.slice(at + 1))));
    rmSync(path);
    const [session] = sessionsIn(codex, home);
    const fixed = await fix(codex, session!, { backups: join(home, "backups") });
    expect(fixed?.diagnosis.problems).toEqual([]);
    expect(zstdDecompressSync(readFileSync(`${path}.zst`)).toString("utf8")).toBe(whole);
    expect(await fix(codex, session!, { backups: join(home, "backups") })).toBe(null);
  });
});
