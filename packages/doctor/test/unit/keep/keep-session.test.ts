import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AGENTS, Door, keepSession, keptCopyOf, type SessionPlace, type SessionRecord } from "../../../src/index.ts";

const claude = AGENTS.find(({ name }) => name === "claude-code")!;
let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-keep-"));
  mkdirSync(join(root, "agent/s/subagents"), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const path = (): string => join(root, "agent/s.jsonl");
const folder = (): string => join(root, "kept");
const session = (more: Partial<SessionPlace> = {}): SessionPlace => ({
  ...{ agent: "claude-code", id: "s", path: path(), parts: [] },
  ...more,
});

/** Keeps it, and says what became of its first file. */
async function keep(given = session(), isThorough = false): Promise<string> {
  using door = new Door();
  const { files } = await keepSession(claude, given, folder(), door, { isThorough });
  return files[0]?.change ?? "none";
}

function copy(given = session()) {
  using door = new Door();
  door.keptFolderOf = () => folder();
  return keptCopyOf(given, door);
}

describe("the files of a session are kept", () => {
  test("as they grow, byte for byte, and nothing twice", async () => {
    writeFileSync(path(), "one\n");
    expect(await keep()).toBe("new");
    expect(await keep()).toBe("none");
    appendFileSync(path(), "two\nthr");
    expect(await keep()).toBe("grown");
    appendFileSync(path(), "ee\n");
    expect(await keep()).toBe("grown");
    expect(readFileSync(copy()!.session!.path, "utf8")).toBe("one\ntwo\nthree\n");
    expect(copy()!.epochs).toEqual([]);
  });

  test("what was there before stays when the file shrinks, is replaced or is rewritten", async () => {
    const contents = ["one\ntwo\n", "one\n", "three\nfour\nfive\n", "three\nFOUR\nfive\n"];
    const changes = [];
    for (const content of contents) {
      rmSync(path(), { force: true });
      writeFileSync(path(), content);
      changes.push(await keep());
    }
    expect(changes).toEqual(["new", "shrunk", "rewritten", "rewritten"]);
    const kept = copy()!;
    expect([kept.session!.path, ...kept.epochs].map((each) => readFileSync(each, "utf8"))).toEqual(
      contents.toReversed(),
    );
  });

  test("a change in the middle of a long file is seen when all of it is compared", async () => {
    const long = Buffer.alloc(3 * 2 ** 20, "a line of sixteen\n");
    writeFileSync(path(), long);
    await keep();
    long[2 ** 20] = 0;
    writeFileSync(path(), long);
    appendFileSync(path(), "more\n");
    expect(await keep(session(), true)).toBe("rewritten");
    expect(readFileSync(copy()!.session!.path)).toEqual(readFileSync(path()));
  });

  test("a copy that was cut off at any byte is completed, and so is one that just got its new name", async () => {
    writeFileSync(path(), "one\ntwo\n");
    await keep();
    const target = copy()!.session!.path;
    for (let length = 0; length < 8; length++) {
      truncateSync(target, length);
      expect(await keep()).toBe("grown");
      expect(readFileSync(target, "utf8")).toBe("one\ntwo\n");
    }
    rmSync(path());
    writeFileSync(path(), "other\n");
    await keep();
    rmSync(target);
    expect(await keep()).toBe("rewritten");
    expect(readFileSync(target, "utf8")).toBe("other\n");
    expect(copy()!.epochs).toHaveLength(1);
  });

  test("files of sub-agents stay when the agent deletes them; one that cannot be opened stops no other", async () => {
    const part = join(root, "agent/s/subagents/agent-a.jsonl");
    writeFileSync(path(), "one\n");
    writeFileSync(part, "part\n");
    await keep(session({ parts: [part] }));
    rmSync(part);
    symlinkSync("/etc/passwd", part);
    appendFileSync(path(), "two\n");
    using door = new Door();
    const { files, refused } = await keepSession(claude, session({ parts: [part] }), folder(), door);
    expect(files.map(({ change }) => change)).toEqual(["grown"]);
    expect(refused.map((each) => each.path)).toEqual([part]);
    expect(copy()!.session!.parts.map((each) => readFileSync(each, "utf8"))).toEqual(["part\n"]);
  });

  test("a file of JSON that is rewritten as it grows has one copy; what it loses stays", async () => {
    const json = (...ids: string[]): string => JSON.stringify({ at: ids.length, messages: ids.map((id) => ({ id })) });
    const given = session({ path: join(root, "agent/s.json") });
    const changes = [];
    for (const ids of [["a"], ["a", "b"], ["a", "b", "c"], ["c"]]) {
      writeFileSync(given.path, json(...ids));
      changes.push(await keep(given));
    }
    expect(changes).toEqual(["new", "grown", "grown", "shrunk"]);
    expect(copy(given)!.epochs.map((each) => readFileSync(each, "utf8"))).toEqual([json("a", "b", "c")]);
  });

  test("rows of a database: each state of a row once, and the last one counts; a cut line is written again", async () => {
    const rows = (...texts: string[]) => {
      const items = texts.map((text, at) => {
        const bytes = Buffer.from(JSON.stringify({ table: "part", id: at, text }));
        return { type: "record" as const, record: { bytes } as unknown as SessionRecord };
      });
      return { ...claude, read: () => Promise.resolve(items) };
    };
    const shared = session({ path: join(root, "agent/all.db"), isShared: true });
    using door = new Door();
    const counts = [];
    for (const texts of [["a"], ["a", "b"], ["A", "b"], ["a", "b"], ["a", "b"]])
      counts.push((await keepSession(rows(...texts), shared, folder(), door)).rows);
    expect(counts).toEqual([1, 1, 1, 1, 0]);
    const kept = copy(shared)!.rows!;
    const whole = readFileSync(kept);
    truncateSync(kept, whole.length - 5);
    expect((await keepSession(rows("a", "b"), shared, folder(), door)).rows).toBe(1);
    expect(readFileSync(kept)).toEqual(whole);
  });

  test("of a session that was never kept there is no copy, and asking for one makes none", () => {
    expect(copy()).toBeNull();
    using door = new Door();
    expect(keptCopyOf(session(), door)).toBeNull();
  });
});
