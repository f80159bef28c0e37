import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { validateAnthropic } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import { openStore, type Reading } from "../../src/index.ts";
import { place } from "../place.ts";

/** The programs in examples/, run as a user runs them, killed where they say so, and run again. */

const EXAMPLES = resolve(import.meta.dirname, "../../../../examples");
/** What each of them prints where it is to be killed. */
const HANDSHAKE = /kill -9 \d+ now/;

interface Ran {
  readonly lines: string[];
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Runs an example to its end, or to its handshake and the signal that is given. */
async function run(name: string, cwd: string, end?: NodeJS.Signals): Promise<Ran> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", join(EXAMPLES, `${name}.ts`)], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<Omit<Ran, "lines">>((done) =>
    child.once("close", (code, signal) => done({ code, signal })),
  );
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    lines.push(line);
    if (end && HANDSHAKE.test(line)) child.kill(end);
  }
  return { lines, ...(await ended) };
}

/** The session of that title, as any other process sees it, and what the provider would say to its messages. */
async function look(cwd: string, title?: string): Promise<{ reading: Reading<unknown>; violations: unknown[] }> {
  await using store = await openStore(join(cwd, "agent-data"));
  const { sessions } = await store.list(title === undefined ? {} : { limit: 100 });
  const found = title === undefined ? sessions[0] : sessions.find((one) => one.title === title);
  const reading = await store.read(found!.id);
  // Where the model has answered, a prompt comes next.
  const isAnswered = reading.interruption?.answered ?? true;
  const request = isAnswered ? [...reading.messages, { role: "user", content: "Thank you." }] : reading.messages;
  return { reading, violations: validateAnthropic(request) };
}

describe("examples/hooks.ts", () => {
  test("P4, P5: killed in the second of three tools, it says how far each came, and goes on without running one twice", async () => {
    using here = place();
    const killed = await run("hooks", here.path, "SIGKILL");
    expect(killed).toMatchObject({ code: null, signal: "SIGKILL" });
    const cut = await look(here.path);
    expect(cut.violations).toEqual([]);
    expect(cut.reading.interruption).toMatchObject({
      how: { kind: "killed" },
      calls: [
        { name: "send_mail", state: "outcome-unknown" },
        { name: "post_summary", state: "never-started" },
      ],
    });

    const again = await run("hooks", here.path);
    expect(again.lines).toEqual([
      "turn 1 was cut off (killed)",
      "  send_mail: outcome-unknown",
      "  post_summary: never-started",
      "model: post_summary never started, so I run it now.",
      "tool: post_summary",
      "model: That is all done, but I do not know whether send_mail took effect: please check.",
      "done",
    ]);
    expect(again.code).toBe(0);
    const ran = [...killed.lines, ...again.lines].filter((line) => line.startsWith("tool: "));
    expect(ran, "each tool ran once, over both lives").toEqual([
      "tool: read_notes",
      "tool: send_mail",
      "tool: post_summary",
    ]);
    const { reading, violations } = await look(here.path);
    expect({ violations, interruption: reading.interruption }).toEqual({ violations: [], interruption: null });
    expect(reading.usage, "three answers were committed").toEqual({ outputTokens: 126 });
  });

  test("R17: told to end by SIGTERM, it ends by that signal, and says so afterwards", async () => {
    using here = place();
    expect(await run("hooks", here.path, "SIGTERM")).toMatchObject({ code: null, signal: "SIGTERM" });
    const { lines, code } = await run("hooks", here.path);
    expect(lines.slice(0, 2)).toEqual(["turn 1 was cut off (signal)", "  send_mail: outcome-unknown"]);
    expect(code).toBe(0);
  });
});

test("examples/array.ts: killed in the middle of an answer, the words are there, and the array goes on", async () => {
  using here = place();
  const killed = await run("array", here.path, "SIGKILL");
  expect(killed).toMatchObject({ code: null, signal: "SIGKILL" });
  const cut = await look(here.path);
  expect(cut.violations).toEqual([]);
  const text = cut.reading.interruption?.draft?.text ?? "";
  expect(text).not.toBe("");
  expect("I will read the notes, send the mail and post the summary.".startsWith(text), text).toBe(true);

  const again = await run("array", here.path);
  expect(again.lines).toEqual([
    "turn 1 was cut off (killed)",
    `  it was saying: ${text}`,
    "model: I will read the notes, send the mail and post the summary.",
    "model: That is all done.",
    "done",
  ]);
  expect(again.code).toBe(0);
  const { reading, violations } = await look(here.path);
  expect({ violations, interruption: reading.interruption }).toEqual({ violations: [], interruption: null });
  expect(reading.entries.map(({ synthetic }) => synthetic)).toEqual([undefined, undefined, undefined, undefined]);
});

test("examples/five-needs.ts: all five hold, and a run that was killed is found by the next", async () => {
  using here = place();
  const killed = await run("five-needs", here.path, "SIGKILL");
  expect(killed).toMatchObject({ code: null, signal: "SIGKILL" });
  for (const title of ["save now", "autosave"]) expect((await look(here.path, title)).violations).toEqual([]);

  const again = await run("five-needs", here.path);
  expect(again.code).toBe(0);
  expect(again.lines.map((line) => line.replace(/ \(.*/, ""))).toEqual([
    "found: autosave, killed: Once upon a time",
    "found: save now, killed: nothing streamed",
    "1 saved in mid-session",
    "2 saved in mid-turn",
    "3 cancelled, and nothing lost",
    "4 metadata is patched",
    "5 hooks, usage and a swap",
  ]);
  for (const title of ["cancel", "metadata", "here", "there"]) {
    expect((await look(here.path, title)).violations, title).toEqual([]);
  }
});
