import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { makeConversation } from "../../../../../bench/messages.ts";
import { readOptions } from "../../../../../bench/options.ts";
import { compare } from "../../../../../bench/peers/compare.ts";
import type { Cell, Comparison, PeerResult } from "../../../../../bench/peers/comparison.ts";
import { FULL, QUICK, turnsAt } from "../../../../../bench/peers/comparison.ts";
import { cacheFolderOf, defaultCache, manifestOf } from "../../../../../bench/peers/install.ts";
import { peersPicture } from "../../../../../bench/peers/picture.ts";
import { comparisonLines, comparisonPage, failedLines } from "../../../../../bench/peers/report.ts";
import { roster } from "../../../../../bench/peers/roster.ts";
import { anthropicForm, PER_TURN, Turns } from "../../../../../bench/peers/turns.ts";
import { amount, cellWords, isClearlyLess } from "../../../../../bench/peers/words.ts";

const plan = { ...QUICK, ages: [100, 1000], resumes: [10_000], sessions: 1000 };
const machine = {
  ...{ cpu: "a processor", cores: 2, memoryGB: 8, system: "linux", fileSystem: "ext4" },
  ...{ node: "v24.0.0", sqlite: "3.50.0", load: 0.1 },
};

function rounds(...values: number[]): Cell {
  return { rounds: values };
}

/** Storing at both ages, resuming, listing. */
function peer(key: string, us: readonly [Cell, Cell], resumeMs: Cell, listMs: Cell, errors: string[] = []): PeerResult {
  const { name, survives, packages, driven, readsLike = null } = roster.find((contender) => contender.key === key)!;
  return {
    ...{ key, name, survives, versions: packages, driven, readsLike, errors, listMs },
    append: { 100: us[0], 1000: us[1] },
    bytes: { 100: rounds(1.1), 1000: rounds(1.2) },
    resumeMs: { 10000: resumeMs },
    resumeMB: { 10000: rounds(100) },
  };
}

const NONE: Cell = { none: "not measured" };
const STOPPED: Cell = { none: "stopped at 400 messages: more than 45 s to the next age" };

function comparison(peers: readonly PeerResult[]): Comparison {
  return { measured: "2026-11-16T00:00:00.000Z", quick: false, machine, plan, peers };
}

const all = comparison([
  peer("holdfast", [rounds(30, 31, 35), rounds(30)], rounds(200, 210, 220), rounds(50)),
  peer("pi", [rounds(15, 16, 17), rounds(29)], rounds(205, 260, 270), rounds(900)),
  peer("mastra", [rounds(200), rounds(210)], { over: 30_000 }, rounds(60)),
  peer("langgraph", [rounds(9000), STOPPED], rounds(1500), { none: "it has no list of threads" }),
  peer("holdfast-power", [rounds(300), rounds(310)], NONE, NONE),
  peer("sqlite-full", [rounds(250), rounds(320)], NONE, NONE),
]);

test("--peers is an option, --cache is one of --peers only", () => {
  expect(readOptions(["--peers", "--quick", "--only", "pi", "--cache", "/c"])).toMatchObject({
    ...{ peers: true, quick: true, only: ["pi"], cache: "/c", write: undefined, help: false },
  });
  expect(readOptions([])).toMatchObject({ peers: false, quick: false, only: [] });
  expect(readOptions(["--no-write"]).write).toBe(false);
  expect(() => readOptions(["--cache", "/c"])).toThrow(/add --peers/);
  expect(() => readOptions(["--pears"])).toThrow(TypeError);
});

test("peers are installed outside the workspace, each version in a folder of its own", () => {
  expect(defaultCache({ XDG_CACHE_HOME: "/x" })).toBe("/x/holdfast-bench");
  expect(defaultCache({}, () => "/home/me")).toBe("/home/me/.cache/holdfast-bench");
  const pi = roster.find(({ key }) => key === "pi")!;
  const folder = cacheFolderOf("/x", pi, "v24.0.0");
  expect(folder).toMatch(/^\/x\/pi-[0-9a-f]{12}$/);
  expect(cacheFolderOf("/x", pi, "v24.0.0")).toBe(folder);
  expect(cacheFolderOf("/x", pi, "v26.0.0")).not.toBe(folder);
  expect(cacheFolderOf("/x", { ...pi, packages: { pi: "9.9.9" } }, "v24.0.0")).not.toBe(folder);
});

test("versions are exact", () => {
  const versions = roster.flatMap(({ packages, overrides = {} }) => Object.values({ ...packages, ...overrides }));
  expect(versions.length).toBeGreaterThan(8);
  for (const version of versions) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  const langgraph = roster.find(({ key }) => key === "langgraph")!;
  expect(manifestOf(langgraph)).toMatchObject({ private: true, overrides: { "better-sqlite3": expect.any(String) } });
});

test("both plans have the age that the picture shows, and the full one grows to 100,000", () => {
  for (const { ages } of [FULL, QUICK]) {
    expect(ages).toContain(1000);
    expect(ages).toEqual(ages.toSorted((a, b) => a - b));
    expect(ages.every((age) => age % PER_TURN === 0)).toBe(true);
  }
  // A young session must not be another age after it was measured.
  for (const age of [1000, 10_000]) expect(turnsAt(age, FULL) * FULL.rounds * PER_TURN).toBeLessThanOrEqual(age / 3);
  expect(turnsAt(100, FULL) * FULL.rounds * PER_TURN).toBeLessThanOrEqual(100);
  expect(turnsAt(100_000, FULL)).toBe(FULL.turnsPerRound);
  expect(FULL.ages.at(-1)).toBe(100_000);
  expect(FULL.resumes.at(-1)).toBe(100_000);
  expect(FULL.sessions).toBe(10_000);
});

test("every contender gets the texts of makeConversation, with ids of calls that never repeat", () => {
  const turns = [...new Turns().upTo(3020)];
  expect(turns).toHaveLength(302);
  const given = makeConversation(PER_TURN, "anthropic");
  const withoutIds = (message: unknown): string => JSON.stringify(message).replaceAll(/"call_\w+"/g, "id");
  expect(turns[0]!.pieces.map(anthropicForm).map(withoutIds)).toEqual(given.map(({ message }) => withoutIds(message)));
  expect(turns[0]!.bytes).toBe(given.reduce((sum, { bytes }) => sum + bytes, 0));
  expect(turns[300]!.pieces[0]).toEqual(turns[0]!.pieces[0]);

  const calls = new Set<string>();
  for (const { pieces } of turns) {
    pieces.forEach((piece, i) => {
      if (piece.kind === "call") expect(calls.size).toBe(calls.add(piece.id).size - 1);
      if (piece.kind === "result") expect(pieces[i - 1]).toMatchObject({ kind: "call", id: piece.id });
    });
  }
  expect(calls.size).toBe(302 * 4);
});

test("numbers have the unit that fits, and medians their spread", () => {
  expect([31.4, 2150, 3_100_000].map((us) => amount(us, "µs"))).toEqual(["31 µs", "2.1 ms", "3.1 s"]);
  expect(amount(0.5, "ms")).toBe("500 µs");
  expect(amount(1234.5, "MB")).toBe("1,235 MB");
  expect(cellWords(rounds(3, 1, 2), "ms")).toBe("2.0 ms (1.0 ms .. 3.0 ms)");
  expect(cellWords(rounds(3), "ms")).toBe("3.0 ms (once)");
  expect(cellWords({ over: 60_000 }, "ms")).toBe("> 60 s");
  expect(cellWords(STOPPED, "ms")).toBe("–");
});

test("one is clearly less only if the rounds do not overlap", () => {
  expect(isClearlyLess(rounds(1, 2), rounds(3, 4))).toBe(true);
  expect(isClearlyLess(rounds(1, 3), rounds(2, 4))).toBe(false);
  expect(isClearlyLess(rounds(1, 3), { over: 60 })).toBe(true);
  expect(isClearlyLess({ over: 1 }, rounds(60))).toBe(false);
  expect(isClearlyLess(rounds(1), NONE)).toBe(false);
});

test("the table tells apart what survives a power cut and what does not, and says why a cell is empty", () => {
  const lines = comparisonLines(all);
  const order = [
    "survives a killed process",
    "Holdfast, process",
    "LangGraph",
    "survives a power cut too",
    "Holdfast, power",
  ];
  const found = order.map((words) => lines.findIndex((line) => line.startsWith(words)));
  expect(found).toEqual(found.toSorted((a, b) => a - b));
  expect(found).not.toContain(-1);
  expect(lines.join("\n")).toContain("LangGraph with SqliteSaver: stopped at 400 messages");
  expect(lines.find((line) => line.startsWith("Mastra") && line.includes("> 30 s"))).toBeDefined();
  expect(lines.some((line) => line.includes("*"))).toBe(false);
});

test("every figure in which another store is better is said, and only against one that survives the same", () => {
  const page = comparisonPage(all);
  const said = page.slice(page.indexOf("## Where another store is better"), page.indexOf("## What each store did"));
  expect(said.trim().split("\n").slice(2)).toEqual([
    "- store a message at 100: **pi**, 16 µs against 31 µs.",
    "- store a message at 100: **SQLite, a row per message, FULL**, 250 µs against 300 µs.",
    "- store a message at 1,000: **pi**, 29 µs against 30 µs.",
  ]);
  const close = comparison([
    peer("holdfast", [rounds(30, 31, 35), NONE], NONE, NONE),
    peer("pi", [rounds(29, 30, 36), NONE], NONE, NONE),
  ]);
  expect(comparisonPage(close)).toContain("30 µs against 31 µs; the rounds overlap.");
  expect(comparisonPage(comparison(all.peers.slice(0, 1)))).toContain("In this run there was none.");
});

test("the page has the machine, the versions, and says if the run was a quick one", () => {
  const page = comparisonPage(all);
  expect(page).toContain("a processor, 2 cores, 8 GB");
  expect(page).toContain("@earendil-works/pi-coding-agent 0.");
  expect(page).not.toMatch(/undefined|NaN|Infinity/);
  expect(page).not.toContain("provisional");
  expect(comparisonPage({ ...all, quick: true })).toContain("provisional");
  for (const line of page.split("\n").filter((line) => !line.startsWith("|"))) expect(line.length).toBeLessThan(121);
});

test("what failed is in the table and in the page", () => {
  const broken = comparison([...all.peers, peer("gemini", [NONE, NONE], NONE, NONE, ["install: npm install failed"])]);
  const line = "FAILED Gemini CLI core: install: npm install failed";
  expect(failedLines(broken)).toEqual([line]);
  expect(comparisonLines(broken)).toContain(line);
  expect(comparisonPage(broken)).toContain(`## What failed\n\n- ${line}`);
  expect(peersPicture(broken)).toContain("Gemini CLI");
  expect(failedLines(all)).toEqual([]);
});

test("a peer that cannot be installed is reported, and the run goes on", async () => {
  const said: string[] = [];
  const run = { plan, quick: true, machine, folder: tmpdir(), cache: "/dev/null/cache", keys: ["pi", "gemini"] };
  const found = await compare({ ...run, say: (line) => said.push(line) });
  expect(failedLines(found)).toEqual([
    expect.stringMatching(/^FAILED pi: install: .*ENOTDIR/),
    expect.stringMatching(/^FAILED Gemini CLI core: install: .*ENOTDIR/),
  ]);
  expect(said.join("\n")).toContain("pi FAILED: install");
  expect(found.peers[0]).toMatchObject({ append: { 100: { none: "not measured" } }, listMs: { none: "not measured" } });
});

test("a bar that is about as long as one of Holdfast's is not cut", () => {
  const slowDisk = comparison([
    peer("holdfast", [rounds(20), rounds(20)], rounds(1), rounds(1)),
    peer("holdfast-power", [rounds(4000), rounds(4000)], NONE, NONE),
    peer("sqlite-full", [rounds(4100), rounds(4100)], NONE, NONE),
  ]);
  expect(peersPicture(slowDisk)).not.toContain('class="cut"');
});

test("the picture has a bar for each figure, cuts the long ones, and can be read in the dark", () => {
  const picture = peersPicture(all);
  expect(picture).not.toMatch(/undefined|NaN|Infinity/);
  expect(picture).toContain("prefers-color-scheme: dark");
  // Storing, resuming, listing. LangGraph has no list.
  expect(picture.match(/class="ours"/g)).toHaveLength(2 + 1 + 1);
  expect(picture.match(/class="theirs"/g)).toHaveLength(4 + 3 + 2);
  // LangGraph's storing, Mastra's resume, pi's list: two strokes each.
  expect(picture.match(/class="cut"/g)).toHaveLength(3 * 2);
  expect(picture).toContain("&gt; 30 s");
  // It was stopped before 1,000 messages, where it takes longer than at 100.
  expect(picture).toContain("&gt; 9.0 ms");
  expect(picture.match(/as above/g)).toHaveLength(4);
  expect(picture.indexOf("also survives a power cut")).toBeLessThan(picture.indexOf("Holdfast (default)"));
  expect(picture.indexOf("LangGraph")).toBeLessThan(picture.indexOf("also survives a power cut"));
});
