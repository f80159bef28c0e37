import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { holds, seedOf } from "../../../../holdfast/test/seed.ts";
import type { ChatState } from "../../../src/host/host.ts";
import { type LiveContent, layOutLiveArea } from "../../../src/screen/drawing/live-area.ts";
import { countExtraRows, doesReflow } from "../../../src/screen/drawing/reflow.ts";
import { pendingItems, Scrollback } from "../../../src/screen/drawing/scrollback.ts";
import { EDITOR, withText } from "../../../src/screen/input/editor.ts";
import { type Line, lineText, lineWidth } from "../../../src/screen/lines/line.ts";
import { panelOf } from "../../../src/screen/panels/panel.ts";
import { openPicker, pickKey, withRows } from "../../../src/screen/pickers/picker.ts";
import { layOutPicker } from "../../../src/screen/pickers/picker-layout.ts";
import { sessionRows } from "../../../src/screen/pickers/session-rows.ts";
import type { CallState, Item } from "../../../src/transcript/item.ts";
import { accountWith, cutOffCall } from "../../account.ts";
import { asking } from "../../screen/ask.ts";

const seed = seedOf(import.meta.url, "unit");
const AT = "2026-11-15T10:00:00.000Z";
const NOW = Date.parse(AT) + 90_000;

const BASE: ChatState = {
  ...{ id: "0199aaaa-0000-7000-8000-000000000000", title: "", cwd: "/tmp/x", model: "offline/offline", status: "idle" },
  ...{
    account: accountWith(),
    items: [],
    live: null,
    outputs: {},
    asks: [],
    queue: [],
    interruption: null,
    usage: {},
    failure: null,
  },
  ...{
    window: { usedTokens: 10, maxTokens: 1000 },
    damage: [],
    mode: "ask",
    canUndo: false,
    isCompacting: false,
    isBusy: false,
  },
};

const prompt = (id: string, text = id): Item => ({ kind: "prompt", id, at: AT, turn: 1, text });
const answer = (id: string, text: string): Item => ({ kind: "answer", id, at: AT, turn: 1, text });
const call = (id: string, state: CallState, output?: string): Item => ({
  ...{ kind: "call", id, at: AT, turn: 1, call: id, name: "shell", input: { command: `run ${id}` }, state },
  ...(output === undefined ? {} : { output }),
});
const live = (text: string, reasoning = ""): ChatState["live"] => ({ text, reasoning, calls: [] });
const text = (lines: readonly Line[]): string => lines.map(lineText).join("\n");

describe("the scrollback", () => {
  test("an answer that was streamed is not written again when it is recorded, whenever that is told", () => {
    const back = new Scrollback();
    const whole = "One.\n\nTwo.\n\nThree.";
    const running: ChatState = { ...BASE, status: "running", items: [prompt("p")] };
    let written = "";
    for (let at = 1; at <= whole.length; at += 3) {
      written += `${text(back.step({ ...running, live: live(whole.slice(0, at)) }, 80, 10).finished)}\n`;
    }
    // Recorded, and still told as streamed; then only recorded.
    const items = [prompt("p"), answer("a", whole)];
    written += text(back.step({ ...running, items, live: live(whole) }, 80, 10).finished);
    written += text(back.step({ ...running, items }, 80, 10).finished);
    for (const word of ["One.", "Two.", "Three."]) expect(written.split(word)).toHaveLength(2);
  });

  test("what is asked for again is called void, and written anew", () => {
    const back = new Scrollback();
    const running: ChatState = { ...BASE, status: "running", items: [prompt("p")] };
    back.step({ ...running, live: live("Old one.\n\nOld two") }, 80, 10);
    const { finished } = back.step({ ...running, live: live("New one.\n\nNew two") }, 80, 10);
    expect(text(finished)).toContain("retrying the request");
    expect(text(finished)).toContain("New one.");
  });

  test("calls go up in their order, when they have ended; one whose end comes after an interruption is written again", () => {
    const back = new Scrollback();
    const running: ChatState = { ...BASE, status: "running" };
    const step = (...items: Item[]): string => text(back.step({ ...running, items }, 80, 10).finished);
    expect(step(prompt("p"), call("1", "running"), call("2", "done", "second"))).not.toContain("second");
    expect(pendingItems({ ...running, items: [prompt("p"), call("1", "running"), call("2", "done")] })).toHaveLength(2);
    const both = step(prompt("p"), call("1", "done", "first"), call("2", "done", "second"));
    expect(both.indexOf("first")).toBeLessThan(both.indexOf("second"));
    const after = new Scrollback();
    expect(text(after.open({ ...BASE, status: "interrupted", items: [call("3", "waiting")] }, 80))).toContain(
      "waiting",
    );
    expect(text(after.step({ ...running, items: [call("3", "done", "ended")] }, 80, 10).finished)).toContain("ended");
  });

  test("an outcome that is being recorded is not called unknown", () => {
    const back = new Scrollback();
    const items = [prompt("p"), call("1", "unknown")];
    expect(text(back.step({ ...BASE, status: "running", items }, 80, 10).finished)).not.toContain("unknown");
    expect(text(back.step({ ...BASE, status: "idle", items }, 80, 10).finished)).toContain("outcome unknown");
  });

  test("a long conversation is written out from its end, with the way to the rest", () => {
    const items = Array.from({ length: 500 }, (_, i) => prompt(`p${i}`));
    const rows = text(new Scrollback().open({ ...BASE, items }, 80));
    expect(rows).toContain("… 440 earlier items: /export");
    expect(rows).toContain("p499");
    expect(rows).not.toContain("p100\n");
  });
});

describe("the live part", () => {
  const ask = asking({ name: "write", input: { content: "a\n".repeat(50) }, summary: "write x", rule: "write(x)" });
  const states: ChatState[] = [
    BASE,
    {
      ...BASE,
      status: "running",
      items: [prompt("p"), ...Array.from({ length: 30 }, (_, i) => call(`${i}`, "running"))],
    },
    { ...BASE, status: "waiting", asks: [ask] },
    {
      ...BASE,
      status: "interrupted",
      queue: Array.from({ length: 9 }, (_, i) => ({ id: `${i}`, text: `queued ${i}` })),
      interruption: {
        ...{ turn: 1, at: AT, resumes: 3, how: { kind: "killed" }, prompt: "do it 日本".repeat(40), answered: false },
        words: "interrupted: its process died",
        text: "words ".repeat(300),
        calls: Array.from({ length: 30 }, (_, i) => ({
          ...cutOffCall(`${i}`, { input: { command: "x".repeat(200) } }),
          ...(i === 0 ? { process: { pid: 4, running: true } } : {}),
        })),
      },
    },
    { ...BASE, queue: [{ id: "q", text: "later" }] },
    { ...BASE, status: "waiting", asks: [ask], queue: [{ id: "q", text: "later" }] },
  ];

  test("whatever there is to show, it fits into the screen, leaves its first and last row, and has its cursor and status line", () => {
    holds(
      fc.property(
        fc.constantFrom(...states),
        fc.integer({ min: 20, max: 200 }),
        fc.integer({ min: 8, max: 60 }),
        fc.constantFrom("", "a", "/", "日本 ".repeat(200), "one\ntwo\nthree\n".repeat(10)),
        fc.integer({ min: 0, max: 80 }),
        (state, columns, rows, typed, answerRows) => {
          const shown: LiveContent = {
            ...{
              state,
              editor: withText(EDITOR, typed),
              panel: panelOf(state, new Set()),
              selected: 0,
              candidates: [],
              now: NOW,
            },
            answer: Array.from({ length: answerRows }, () => [{ text: "row" }]),
            pending: pendingItems(state),
            status: { frame: 3, elapsedMs: 61_000, busy: null, hint: "Esc to stop", elsewhere: '"other" is done' },
          };
          const view = layOutLiveArea(shown, { columns, rows });
          expect(view.lines.length).toBeLessThan(rows - 1);
          for (const row of view.lines) expect(lineWidth(row)).toBeLessThanOrEqual(columns);
          const { cursor } = view;
          // An answer that streams into an empty editor draws its own.
          expect(cursor === null).toBe(state.status === "running" && shown.panel === null && typed === "");
          expect(cursor?.y ?? 0).toBeGreaterThanOrEqual(0);
          expect(cursor?.y ?? 0).toBeLessThan(view.lines.length);
          expect(cursor?.x ?? 0).toBeLessThan(columns);
          expect(lineText(view.lines.at(-1)!)).toMatch(/^(idle|queued|. running|\? waiting|! interrupted)/u);
        },
      ),
      seed,
      300,
    );
  });

  test("a prompt that is given while a question waits is seen to be queued", () => {
    const state = states[5]!;
    const shown: LiveContent = {
      ...{
        state,
        editor: EDITOR,
        panel: panelOf(state, new Set()),
        selected: 0,
        candidates: [],
        now: NOW,
        answer: [],
        pending: [],
      },
      status: { frame: 0, elapsedMs: 0, busy: null, hint: "", elsewhere: "" },
    };
    for (const rows of [24, 60]) {
      const seen = text(layOutLiveArea(shown, { columns: 80, rows }).lines);
      expect(seen).toMatch(/y {2}allow once[\s\S]*\n {2}queued: later\n/);
      expect(seen, "the arrows are the question's").not.toContain("edits the last one");
    }
  });

  test("a call that was answered does not seem to wait while others do", () => {
    const items = [prompt("p"), call("1", "waiting"), call("2", "waiting"), call("3", "waiting")];
    const asks = ["2", "3"].map((id) => asking({ call: id, name: "shell", input: {}, summary: "run" }));
    const state: ChatState = { ...BASE, status: "waiting", items, asks };
    const shown: LiveContent = {
      ...{
        state,
        editor: EDITOR,
        panel: null,
        selected: 0,
        candidates: [],
        now: NOW,
        answer: [],
        pending: pendingItems(state),
      },
      status: { frame: 0, elapsedMs: 0, busy: null, hint: "", elsewhere: "" },
    };
    const seen = text(layOutLiveArea(shown, { columns: 80, rows: 24 }).lines);
    expect(seen).toMatch(/run 1 {2}answered\n.*run 3 {2}waiting for approval/);
  });

  test("a large window shows more of what would be written", () => {
    const content = Array.from({ length: 60 }, (_, i) => `line ${i};`).join("\n");
    const ask = asking({ name: "write", input: { path: "x", content }, rule: "write(x)" });
    const panel = panelOf({ ...BASE, status: "waiting", asks: [ask] }, new Set())!;
    const shownIn = (rows: number): number => text(panel.lines(80, rows, NOW)).match(/line \d+;/g)!.length;
    expect([shownIn(14), shownIn(50), shownIn(200)]).toEqual([6, 42, 60]);
    for (const rows of [14, 50, 200]) expect(text(panel.lines(80, rows, NOW))).toContain("line 59;");
  });

  test("a person sees every character of a command, also those that a terminal would not show", () => {
    const asked = (command: string): string => {
      const ask = asking({ name: "shell", input: { command } });
      return text(panelOf({ ...BASE, status: "waiting", asks: [ask] }, new Set())!.lines(80, 16, NOW));
    };
    expect(asked("echo a\u001b[8m; rm x\u202e\u200b\u0000b")).toContain(
      "command: echo a<U+001B>[8m; rm x<U+202E><U+200B><U+0000>b",
    );
    expect(asked("echo a\r\necho 日本\tb ")).toMatch(/│ echo a<U\+000D>↵\n.*│ echo 日本⇥b<U\+0020>$/m);
  });

  test.each([
    ["on one line", `echo ${"x ".repeat(400)}; rm -rf precious`],
    ["on many lines", `${"echo x\n".repeat(40)}rm -rf precious`],
    ["very long", `echo ${"x".repeat(100_000)}; rm -rf precious`],
  ])("a person sees how a command ends, or is told that there is more: %s", (_, command) => {
    const summary = `run ${command.replaceAll("\n", " ").slice(0, 195)}…`;
    const asked = asking({ name: "shell", input: { command }, summary });
    const panel = panelOf({ ...BASE, status: "waiting", asks: [asked] }, new Set())!;
    expect(text(panel.lines(78, 16, NOW)).replaceAll(/\n {2}(?:│| ) /g, "")).toContain("rm -rf precious");
    for (const rows of [3, 6, 9]) {
      const seen = panel.lines(78, rows, NOW);
      expect(seen.length).toBe(rows);
      const body = seen.slice(1).map(lineText);
      const [, hidden, lines] = /… v shows (\d+) more characters, on (\d+) lines?/.exec(body.join("\n"))!;
      const shown = body
        .filter((row) => !row.includes("… "))
        .map((row) => row.replace(/^ {2}(?:│| |command:|runs in:|"always" allows:) /, ""));
      const all = asked.parts.reduce((sum, part) => sum + part.text.replaceAll("\n", "").length, 0);
      expect(shown.map((row) => row.replace(/^ {2}command:$/, "")).join("").length + Number(hidden)).toBe(all);
      expect(Number(lines)).toBeGreaterThan(0);
    }
    expect(lineText(panel.lines(38, 2, NOW).at(-1)!)).toMatch(/^ {2}run echo x.*…$/);
  });

  test.each([5, 6, 7, 8, 9, 10, 12])(
    "nobody chooses blindly: in a window of %s rows a question says what it is about",
    (rows) => {
      const state = states[2]!;
      const shown: LiveContent = {
        ...{
          state,
          editor: EDITOR,
          panel: panelOf(state, new Set()),
          selected: 0,
          candidates: [],
          now: NOW,
          answer: [],
          pending: [],
        },
        status: { frame: 0, elapsedMs: 0, busy: null, hint: "", elsewhere: "" },
      };
      const seen = text(layOutLiveArea(shown, { columns: 30, rows }).lines);
      expect(seen).toMatch(/write x|real path: \/tmp\/x\/file/);
      if (rows > 5) expect(seen).toMatch(/▸ y (?: allow once|yes)/);
    },
  );

  test("what waits for a word offers it: permission before all, then an interruption, then the queue", () => {
    const keys = (state: ChatState): string =>
      panelOf(state, new Set())
        ?.choices.map(({ key }) => key)
        .join("") ?? "";
    expect(keys(BASE)).toBe("");
    expect(keys(states[2]!)).toBe("yapntv");
    expect(keys(states[3]!)).toBe("fkls");
    expect(keys({ ...states[3]!, interruption: { ...states[3]!.interruption!, calls: [] } })).toBe("fls");
    expect(keys({ ...BASE, status: "interrupted", failure: { code: "STORE_FULL", message: "full" } })).toBe("fl");
    expect(keys(states[4]!)).toBe("swl");
    expect(keys({ ...states[4]!, status: "running" })).toBe("");
    expect(panelOf(states[4]!, new Set(["queue:q"]))).toBeNull();
  });

  test("to finish a turn whose calls wait is said to ask about them", () => {
    const left: ChatState = { ...states[3]!, interruption: { ...states[3]!.interruption!, calls: [] } };
    const asking: ChatState = { ...left, account: { ...BASE.account, can: { ...BASE.account.can, answer: true } } };
    expect([left, asking].map((state) => panelOf(state, new Set())?.choices[0]?.label)).toEqual([
      "finish it",
      "finish it: you are asked about each waiting call",
    ]);
  });
});

test("a screen that is made narrower: the rows above the cursor are counted as the terminal has broken them", () => {
  const live = ["x".repeat(100), "\u001b[1mshort\u001b[22m", "日".repeat(50), "❯ typed"].join("\n");
  expect(countExtraRows({ live, cursor: { x: 7, y: 3 } }, 100)).toBe(0);
  expect(countExtraRows({ live, cursor: { x: 7, y: 3 } }, 50)).toBe(2);
  expect(countExtraRows({ live, cursor: { x: 7, y: 3 } }, 30)).toBe(6);
  expect(countExtraRows({ live, cursor: { x: 70, y: 0 } }, 30)).toBe(2);
  expect(countExtraRows({ live, cursor: null }, 30)).toBe(6);
  expect(countExtraRows({ live: "", cursor: null }, 30)).toBe(0);
  expect(doesReflow({ TERM: "xterm-256color" })).toBe(true);
  expect(doesReflow({ TERM: "xterm-256color", XTERM_VERSION: "XTerm(390)" })).toBe(false);
});

describe("the list of sessions", () => {
  const summary = (id: string, title: string, status: "idle" | "interrupted" | "running") => ({
    ...{ id: `0199${id}-0000-7000-8000-000000000000`, title, cwd: "/tmp/x", at: AT, turns: 1, queued: 0, status },
  });
  const sessions = [
    summary("0001", "newest", "idle"),
    { ...summary("0002", "a sub-agent", "idle"), parent: { session: "x" } },
    summary("0003", "broken off \u001b[31m日本", "interrupted"),
    summary("0004", "at work", "running"),
  ];

  test("interrupted ones first, no sub-agents, nothing harmful", () => {
    const rows = sessionRows(sessions, NOW);
    expect(rows.map(({ title }) => title)).toEqual(["broken off 日本", "newest", "at work"]);
    expect(rows[0]!.mark).toBe("interrupted");
  });

  test("typing filters by all words; what is chosen stays chosen when more come", () => {
    let picker = openPicker("sessions", "Sessions", sessionRows(sessions, NOW));
    const type = (text: string) => {
      const picked = pickKey(picker, { name: "text", text }, 5);
      if (picked.kind === "open") picker = picked.picker;
      return picker.matches.map(({ title }) => title);
    };
    expect(type("work ")).toEqual(["at work"]);
    expect(type("run")).toEqual(["at work"]);
    expect(type("zzz")).toEqual([]);
    expect(pickKey(picker, { name: "enter" }, 5).kind).toBe("open");
    const cleared = pickKey(picker, { name: "escape" }, 5);
    expect(cleared).toMatchObject({ kind: "open", picker: { filter: "" } });
    expect(pickKey(openPicker("sessions", "", []), { name: "escape" }, 5).kind).toBe("cancelled");
    const second = { ...openPicker("sessions", "", sessionRows(sessions, NOW)), selected: 1 };
    const rows = sessionRows([summary("0005", "also broken", "interrupted"), ...sessions], NOW);
    const more = withRows(second, { rows, loading: false });
    expect(more.matches[more.selected]!.title).toBe("newest");
  });

  test("hits in the text of a session come after those in its title, with an excerpt and their own count", () => {
    const filtered = pickKey(
      openPicker("sessions", "Sessions", sessionRows(sessions, NOW)),
      { name: "text", text: "new" },
      5,
    );
    if (filtered.kind !== "open") throw new Error("it is open");
    const hits = new Map([
      [sessions[0]!.id, "something new"],
      [sessions[3]!.id, "… nothing new here …"],
    ]);
    const found = withRows(filtered.picker, { hits, searching: false });
    expect(found.matches.map(({ title, isByText }) => [title, isByText === true])).toEqual([
      ["newest", false],
      ["at work", true],
    ]);
    const seen = text(layOutPicker(found, [], 100, 20).lines);
    expect(seen).toContain("2 of 3, 1 by their text");
    expect(seen).toContain("… nothing new here …");
    expect(text(layOutPicker({ ...found, searching: true }, [], 100, 20).lines)).toContain("searching …");
  });

  test("ten thousand sessions: what a row says is put together once, however many keys are pressed", () => {
    let read = 0;
    const rows = Array.from({ length: 10_000 }, (_, i) => ({
      ...{ id: `id-${i}`, mark: "", urgent: false },
      title: `number ${i}`,
      get detail() {
        read++;
        return "detail";
      },
    }));
    let picker = openPicker("sessions", "Sessions", rows);
    for (const key of [..."number 9999"]) {
      const picked = pickKey(picker, { name: "text", text: key }, 5);
      if (picked.kind === "open") picker = picked.picker;
      layOutPicker(picker, [], 100, 20);
    }
    expect(picker.matches.map(({ title }) => title)).toEqual(["number 9999"]);
    // Once for each row, and for the rows that were drawn.
    expect(read).toBeLessThan(11_000);
  });

  test("it fits into any screen", () => {
    holds(
      fc.property(
        fc.integer({ min: 20, max: 220 }),
        fc.integer({ min: 6, max: 60 }),
        fc.nat(60),
        (columns, rows, height) => {
          const picker = openPicker("sessions", "Sessions", sessionRows(sessions, NOW));
          const preview: Line[] = Array.from({ length: height }, () => [{ text: "日本 word ".repeat(3) }]);
          const view = layOutPicker(picker, preview, columns, rows);
          expect(view.lines.length).toBeLessThanOrEqual(rows);
          for (const row of view.lines) expect(lineWidth(row)).toBeLessThanOrEqual(columns);
        },
      ),
      seed,
      200,
    );
  });
});
