import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  AGENTS,
  Door,
  type FoundSession,
  type RefreshOptions,
  SessionIndex,
  sessionsHere,
} from "../../../src/index.ts";
import { listRecordings, placeRecording } from "../../real/recording.ts";
import { scratchFolder } from "../agents/agent-suite.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-overview-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const line = (uuid: string, parent: string | null, role: string, text: string): string =>
  `${JSON.stringify({ parentUuid: parent, type: role, uuid, sessionId: "s", cwd: "/work", message: { role, content: text } })}\n`;

function claudeFile(id: string, text: string): string {
  const folder = join(scratch, ".claude", "projects", "-work");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${id}.jsonl`);
  writeFileSync(path, line("a", null, "user", text));
  return path;
}

/** Brings the index up to date; returns the ids of the sessions that were read. */
async function refresh(options: Partial<RefreshOptions> = {}, path = join(scratch, "index.sqlite")): Promise<string[]> {
  return await SessionIndex.use(path, async (index) => {
    const read: string[] = [];
    using run = new Door();
    const found = [...sessionsHere(AGENTS, { environment: {}, home: scratch }, run)].map(
      ({ agent, session }): FoundSession => ({
        session,
        agent: {
          ...agent,
          read: (place, door) => {
            read.push(place.id);
            return agent.read(place, door);
          },
        },
      }),
    );
    await index.refresh(found, { isWhole: true, run, ...options });
    return read;
  });
}

const list = () => SessionIndex.use(join(scratch, "index.sqlite"), (index) => index.list());
const search = (words: string): Promise<string[]> =>
  SessionIndex.use(join(scratch, "index.sqlite"), async (index) => {
    const hits: string[] = [];
    for await (const { session, excerpt } of index.search(words, () => true)) hits.push(`${session.id}: ${excerpt}`);
    return hits;
  });

describe("the list and the index of all agents' sessions", () => {
  test("every recorded session of every agent is listed, with its first prompt, as its agent wrote it", async () => {
    const ids = new Set<string>();
    for (const recording of listRecordings()) {
      using place = scratchFolder();
      const { home } = placeRecording(recording, place.folder);
      using run = new Door();
      const found = [...sessionsHere(AGENTS, { environment: {}, home }, run)];
      for (const { session } of found) ids.add(session.id);
      await SessionIndex.use(null, async (index) => {
        await index.refresh(found, { isWhole: true, run });
        for (const { problems, prompt, title, id } of await index.list()) {
          const what = `${recording.format} ${recording.story} ${id}`;
          expect(problems, what).toEqual({ count: 0, kinds: [] });
          expect(title ?? prompt, what).toMatch(/^[A-Z]/);
        }
      });
    }
    expect(ids.size).toBeGreaterThan(40);
  });

  test("only what has changed is read again", async () => {
    const [one] = [claudeFile("one", "herons fish"), claudeFile("two", "egrets fly")];
    expect((await refresh()).toSorted()).toEqual(["one", "two"]);
    expect(await refresh()).toEqual([]);
    appendFileSync(one, line("b", "a", "assistant", "They wade."));
    expect(await refresh()).toEqual(["one"]);
    expect(await search("wade")).toEqual(["one: They wade."]);
    expect(await search("heron")).toEqual(["one: herons fish"]);
    rmSync(one);
    expect(await refresh()).toEqual([]);
    expect(await search("fish")).toEqual([]);
    expect((await list()).map(({ id }) => id)).toEqual(["two"]);
  });

  test("a list reads little; what it says of a session's health it knows only from a search", async () => {
    claudeFile("one", "herons fish");
    await refresh({ isWhole: false });
    expect(await list()).toMatchObject([{ prompt: "herons fish", folder: "/work", problems: null }]);
    expect(await refresh()).toEqual(["one"]);
    expect(await refresh({ isWhole: false })).toEqual([]);
    expect(await list()).toMatchObject([{ problems: { count: 0 } }]);
  });

  test("damage is counted, and hides no text of the session or of others", async () => {
    appendFileSync(claudeFile("one", "herons fish"), '{"torn');
    claudeFile("two", "egrets fish");
    await refresh();
    expect((await search("fish")).length).toBe(2);
    const problems = (await list()).map((session) => [session.id, session.problems?.kinds]);
    expect(problems.toSorted()).toEqual([
      ["one", ["torn-record"]],
      ["two", []],
    ]);
  });

  test("what looks like a credential is not in the index", async () => {
    const secret = `ghp_${"a1B2".repeat(9)}`;
    claudeFile("one", `my token is ${secret}, herons`);
    await refresh();
    expect(await search("herons")).toEqual(["one: my token is [redacted:github], herons"]);
    expect((await list())[0]!.prompt).not.toContain(secret);
    expect(readFileSync(join(scratch, "index.sqlite")).includes(secret)).toBe(false);
    expect(statSync(join(scratch, "index.sqlite")).mode & 0o777).toBe(0o600);
  });

  test("a stop keeps what was read, and the next run goes on", async () => {
    for (const name of ["one", "two", "three"]) claudeFile(name, `herons of ${name}`);
    let asked = 0;
    await refresh({ isOver: () => ++asked > 3 });
    const kept = (await list()).length;
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThan(3);
    expect((await refresh()).length).toBe(3 - kept);
    expect((await search("herons")).length).toBe(3);
  });

  test("a session that changes while another is stopped in the middle is read whole the next time", async () => {
    const path = claudeFile("one", "herons fish");
    for (let n = 0; n < 3_000; n++) appendFileSync(path, line(`r${n}`, "a", "assistant", `word${n} herons`));
    let texts = 0;
    await refresh({ isOver: () => ++texts > 2_500 });
    expect(await list()).toEqual([]);
    await refresh();
    expect((await search("word2999")).length).toBe(1);
    expect((await search("word7")).filter((hit) => hit.includes("word7 ")).length).toBe(1);
  });

  test("a damaged index is built again; one that cannot be written is kept in memory", async () => {
    claudeFile("one", "herons fish");
    await refresh();
    writeFileSync(join(scratch, "index.sqlite"), "SQLite format 3\0 and nothing of it");
    expect(await refresh()).toEqual(["one"]);
    expect((await search("herons")).length).toBe(1);
    mkdirSync(join(scratch, "taken"));
    expect(await refresh({}, join(scratch, "taken"))).toEqual(["one"]);
    expect(existsSync(join(scratch, "taken"))).toBe(true);
  });

  test("two processes at once: both see everything", async () => {
    for (let n = 0; n < 20; n++) claudeFile(`s${n}`, `herons ${n}`);
    await Promise.all([refresh(), refresh(), refresh({ isWhole: false })]);
    expect((await search("herons")).length).toBe(20);
    expect((await list()).every(({ problems }) => problems?.count === 0)).toBe(true);
  });

  test("a folder that cannot be listed hides no other; its sessions stay in the list", async () => {
    claudeFile("one", "herons fish");
    await refresh();
    const many = join(scratch, ".claude", "projects", "-many");
    mkdirSync(many);
    for (let n = 0; n < 60; n++) writeFileSync(join(many, `${n}.jsonl`), "");
    symlinkSync(many, join(scratch, ".claude", "projects", "-link"));
    execFileSync("mkfifo", [join(scratch, ".claude", "projects", "-work", "pipe.jsonl")]);
    const refused: string[] = [];
    using run = new Door({ entriesMax: 50 }, null, ({ path }) => void refused.push(path));
    const found = [...sessionsHere(AGENTS, { environment: {}, home: scratch }, run)];
    expect(found.map(({ session }) => session.id)).toEqual(["one"]);
    expect(refused).toEqual([many]);
    await SessionIndex.use(join(scratch, "index.sqlite"), (index) =>
      index.refresh([], { isWhole: false, run, incomplete: new Set(["claude-code"]) }),
    );
    expect((await list()).map(({ id }) => id)).toEqual(["one"]);
  });
});
