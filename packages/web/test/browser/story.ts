import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ModelMessage } from "ai";
import { openStore, type Session, type Store, type Turn } from "holdfast";
import { Clock } from "./clock.ts";

/**
 * Records the sessions that the tests and the pictures of the documentation show: `node story.ts <folder> <part>`. Each
 * part is a process of its own; two of them end by SIGKILL, as in life.
 */

const MODEL = "anthropic/claude-opus-5";
const [folder, part] = process.argv.slice(2) as [string, string];
const work = join(folder, "work", "importer");
const HERO = "Make the CSV importer survive a crash";
const clock = new Clock("2026-11-12T09:04:10.000Z");

type Call = {
  readonly name: string;
  readonly input: Record<string, unknown>;
  readonly ms: number;
  readonly output: string;
  readonly fails?: true;
};
let ids = 0;

const parts: Record<string, () => Promise<void>> = { first, second, third, others };
mkdirSync(work, { recursive: true });
await parts[part]!();

async function first(): Promise<void> {
  const store = await openStore(join(folder, "store"), { app: "holdfast", recordsToolStarts: true });
  const session = await store.create({ dialect: "ai-sdk", title: HERO, cwd: work });
  const turn = await (session as unknown as Session<ModelMessage>).startTurn(
    user(
      "The nightly import loses rows when the machine reboots. Find out why, and make it continue where it stopped.",
    ),
  );
  await step(turn, 2600, 4200, "I'll read the importer and its tests first.", [
    call(
      "read",
      { path: "src/import.ts" },
      340,
      "export async function importRows(file: string) {\n  const rows = await parse(file);\n  for (const row of rows) await insert(row);\n}",
    ),
    call(
      "read",
      { path: "src/db.ts" },
      520,
      "export async function insert(row: Row) {\n  await pool.query(INSERT, values(row));\n}",
    ),
    call(
      "search",
      { pattern: "importRows", path: "test" },
      1900,
      'test/import.test.ts:12: await importRows("rows.csv");',
    ),
  ]);
  await step(
    turn,
    3100,
    6800,
    "Rows are inserted one by one, and nothing records how far the import came. I'll keep the offset of the last committed row in the same transaction as the rows.",
    [
      call(
        "edit",
        {
          path: "src/import.ts",
          old: "export async function importRows(file: string) {\n  const rows = await parse(file);\n  for (const row of rows) await insert(row);\n}",
          new: "export async function importRows(file: string) {\n  const from = await lastOffset(file);\n  for await (const batch of batches(file, from)) {\n    await insertAll(batch.rows, { file, offset: batch.end });\n  }\n}",
        },
        30,
        "edited src/import.ts",
      ),
      call(
        "edit",
        {
          path: "src/db.ts",
          old: "export async function insert(row: Row) {\n  await pool.query(INSERT, values(row));\n}",
          new: "export async function insertAll(rows: Row[], done: Progress) {\n  await transaction(async (client) => {\n    for (const row of rows) await client.query(INSERT, values(row));\n    await client.query(PROGRESS, [done.file, done.offset]);\n  });\n}",
        },
        28,
        "edited src/db.ts",
      ),
    ],
  );
  await step(turn, 1800, 2100, "Now the tests.", [
    call(
      "shell",
      { command: "npm test" },
      41_000,
      "✗ importRows resumes after a crash\n  expected 1000 rows, found 1003\n2 passed, 1 failed",
      true,
    ),
  ]);
  await step(
    turn,
    2900,
    5200,
    "The batch that was in flight is read again, because the offset is that of its beginning. It must be the end.",
    [
      call(
        "edit",
        {
          path: "src/import.ts",
          old: "    await insertAll(batch.rows, { file, offset: batch.end });",
          new: "    // The offset and the rows commit together, or not at all.\n    await insertAll(batch.rows, { file, offset: batch.end + 1 });",
        },
        26,
        "edited src/import.ts",
      ),
      call("shell", { command: "npm test" }, 38_400, "3 passed"),
    ],
  );
  await answer(
    turn,
    2200,
    7400,
    "The import continues where it stopped.\n\n- **Why rows were lost:** nothing recorded how far an import came, so a restart began with the next file.\n- **What changed:** rows and their offset commit in one transaction (`src/db.ts`), and `importRows` starts from the last offset.\n\n| test | result |\n|---|---|\n| plain import | passes |\n| killed in the middle, started again | passes, 1000 rows |\n\nRun `npm run import` once to create the `progress` table.",
  );
  await turn.end();
  clock.goTo("2026-11-12T09:31:40.000Z");
  const second = await (session as unknown as Session<ModelMessage>).startTurn(
    user("Good. Try it with the big file, and kill it a few times."),
  );
  await step(second, 2400, 3000, "I'll generate a file with a million rows and import it.", [
    call("shell", { command: "node scripts/rows.js 1000000 > big.csv" }, 12_600, "wrote big.csv (61 MB)"),
  ]);
  const { draft } = second.request();
  clock.pass(2100);
  draft.push({ text: "Starting the import, and " } as never);
  clock.pass(1500);
  await second.append(
    assistant("Starting the import, and killing it after ten seconds.", [
      { id: "call_big", name: "shell", input: { command: "npm run import big.csv" } },
    ]),
    { model: MODEL } as never,
  );
  await second.toolStarted("call_big");
  clock.pass(19_000);
  await second.usage({ inputTokens: 18_200, outputTokens: 310, cost: { amount: 0.11, currency: "USD" } });
  process.kill(process.pid, "SIGKILL");
}

async function second(): Promise<void> {
  clock.goTo("2026-11-12T11:46:05.000Z");
  const store = await openStore(join(folder, "store"), { app: "holdfast", recordsToolStarts: true });
  const session = await hero(store);
  const turn = await session.resumeTurn();
  await step(
    turn,
    3000,
    4300,
    "The machine went down during the import, so its outcome is unknown. I'll count the rows before I start it again.",
    [
      call("shell", { command: "psql -c 'select count(*) from rows'" }, 900, "412000"),
      call("shell", { command: "psql -c 'select * from progress'" }, 700, "big.csv | 25841204"),
    ],
  );
  await step(turn, 1900, 2600, "412,000 rows, and the offset fits. Continuing.", [
    call("shell", { command: "npm run import big.csv" }, 33_000, "imported 588000 rows"),
  ]);
  await answer(
    turn,
    1700,
    4100,
    "The import survived: **412,000** rows were there before the crash, and the second run added the other **588,000**. None is missing or doubled.",
  );
  await turn.end();
  clock.pass(9000);
  const kept = session.entries.slice(-4);
  await session.replace(
    [
      user(
        "[Summary of the conversation so far]\nThe CSV importer now keeps its offset in the table `progress`, in the same transaction as the rows. Tests pass. A crash during a million rows was survived: 412,000 + 588,000 rows.",
      ),
      ...kept.slice(-1),
    ],
    { reason: "compaction" },
  );
  clock.goTo("2026-11-12T11:58:20.000Z");
  const third = await session.startTurn(
    user("Write it up for the team, and rewrite the whole history of the module while you are at it."),
  );
  const { draft } = third.request();
  clock.pass(2500);
  for (const words of ["I'll begin ", "with the history ", "of the module: "]) {
    draft.push({ text: words } as never);
    await session.flush();
    clock.pass(1400);
  }
  await third.abort({ by: "user" });
  clock.goTo("2026-11-12T12:01:10.000Z");
  const fourth = await session.startTurn(user("Only the write-up, please."));
  await step(fourth, 2300, 3900, "", [
    call(
      "write",
      {
        path: "docs/import.md",
        content:
          "# The import\n\nIt continues where it stopped.\n\n- Rows and their offset commit together.\n- `progress` has one line for each file.\n",
      },
      22,
      "wrote docs/import.md",
    ),
  ]);
  await answer(fourth, 1500, 2600, "Written to `docs/import.md`.");
  await fourth.end();
  await session.close();
  await store.close();
}

async function third(): Promise<void> {
  clock.goTo("2026-11-12T14:20:30.000Z");
  const store = await openStore(join(folder, "store"), { app: "holdfast", recordsToolStarts: true });
  const session = await hero(store);
  const turn = await session.startTurn(
    user(
      "Release 2.4.0: bump the version, tag it, publish it, and tell the channel. Have the changelog checked by a sub-agent.",
    ),
  );
  const child = await store.create({
    dialect: "ai-sdk",
    title: "Check the changelog of 2.4.0",
    cwd: work,
    parent: { session: session.id, call: "call_child" },
  });
  const inner = await (child as unknown as Session<ModelMessage>).startTurn(
    user("Compare CHANGELOG.md with the commits since 2.3.1."),
  );
  await step(inner, 1200, 2000, "", [
    call(
      "shell",
      { command: "git log --oneline v2.3.1.." },
      400,
      "9f3a11c import: continue after a crash\n77b02de docs: the import",
    ),
  ]);
  await answer(inner, 900, 1800, "The changelog lacks the fix of the importer.");
  await inner.end();
  await child.close();
  await turn.append(
    assistant("I'll check the changelog and bump the version.", [
      { id: "call_child", name: "agent", input: { task: "Compare CHANGELOG.md with the commits since 2.3.1." } },
      {
        id: "call_bump",
        name: "edit",
        input: { path: "package.json", old: '  "version": "2.3.1",', new: '  "version": "2.4.0",' },
      },
      {
        id: "call_log",
        name: "edit",
        input: {
          path: "CHANGELOG.md",
          old: "# Changelog\n",
          new: "# Changelog\n\n## 2.4.0\n\n- The import continues after a crash.\n",
        },
      },
    ]),
    { model: MODEL } as never,
  );
  await turn.toolStarted("call_child", { child: child.id });
  await turn.toolStarted("call_bump");
  clock.pass(30);
  await turn.toolEnded("call_bump", { value: "edited package.json" });
  await turn.toolStarted("call_log");
  clock.pass(40);
  await turn.toolEnded("call_log", { value: "edited CHANGELOG.md" });
  clock.pass(6400);
  await turn.toolEnded("call_child", { value: "The changelog lacks the fix of the importer." });
  await turn.usage({ inputTokens: 9400, outputTokens: 420, cost: { amount: 0.06, currency: "USD" } });
  await step(turn, 2000, 2600, "Both are in the changelog now. Tagging.", [
    call("shell", { command: "git tag v2.4.0" }, 300, ""),
  ]);
  const { draft } = turn.request();
  clock.pass(2200);
  draft.push({ text: "Publishing and telling the channel." } as never);
  await session.flush();
  clock.pass(1500);
  await draft.commit(
    assistant("Publishing and telling the channel.", [
      { id: "call_publish", name: "shell", input: { command: "npm publish" } },
      { id: "call_post", name: "slack__post", input: { channel: "#releases", text: "importer 2.4.0 is out" } },
      { id: "call_mail", name: "slack__post", input: { channel: "#data", text: "Please upgrade to importer 2.4.0" } },
    ]),
    { model: MODEL } as never,
  );
  await turn.toolStarted("call_publish");
  clock.pass(7800);
  await turn.usage({ inputTokens: 11_800, outputTokens: 160, cost: { amount: 0.05, currency: "USD" } });
  process.kill(process.pid, "SIGKILL");
}

/** Neighbours in the list, in all states. */
async function others(): Promise<void> {
  const store = await openStore(join(folder, "store"), { app: "holdfast", recordsToolStarts: true });
  const titles = [
    "Why is the build slow?",
    "Rename Account to Customer everywhere",
    "Explain the retry logic in queue.ts",
    "Upgrade to Node 24",
    "Find the memory leak in the worker",
    "Translate the error messages",
    "Draft the post-mortem of Monday",
    "Add dark mode to the settings page",
    "Sort out the flaky login test",
    "Review the pull request about caching",
  ];
  for (const [index, title] of titles.entries()) {
    clock.goTo(`2026-11-1${index % 2}T1${index % 8}:1${index % 6}:00.000Z`);
    const session = await store.create({
      dialect: "ai-sdk",
      title,
      cwd: join(folder, "work", ["importer", "website", "worker"][index % 3]!),
    });
    const turn = await (session as unknown as Session<ModelMessage>).startTurn(user(title));
    await answer(turn, 1200, 3000, `${title} Here is what I found.`);
    if (index === 4) await turn.suspend({ reason: "permission" });
    else if (index === 7) await turn.abort({ by: "user" });
    else await turn.end();
    await session.close();
  }
  clock.goTo("2026-11-12T12:20:00.000Z");
  const source = await hero(store, true);
  const at = source.entries.at(-1)!.id;
  const fork = await store.fork(source.id, { at });
  await fork.rename("Importer: try it with COPY instead");
  const turn = await (fork as unknown as Session<ModelMessage>).startTurn(
    user("Try COPY instead of single inserts, and compare the times."),
  );
  await step(turn, 1800, 2500, "COPY takes all rows of a batch in one statement.", [
    call("shell", { command: "node bench/copy.js" }, 9200, "INSERT 33.0 s\nCOPY    4.1 s"),
  ]);
  await answer(turn, 1500, 2000, "COPY takes **4.1 s** instead of 33 s.");
  await turn.end();
  await fork.close();
  await store.close();
}

async function hero(store: Store, isRead = false): Promise<Session<ModelMessage>> {
  const { sessions } = await store.list({ limit: 100 });
  const { id } = sessions.find(({ title }) => title === HERO)!;
  return (isRead ? await store.read(id) : await store.resume(id)) as Session<ModelMessage>;
}

function user(content: string): ModelMessage {
  return { role: "user", content };
}

function call(name: string, input: Record<string, unknown>, ms: number, output: string, fails?: true): Call {
  return { name, input, ms, output, ...(fails ? { fails } : {}) };
}

function assistant(text: string, calls: readonly { id: string; name: string; input: unknown }[]): ModelMessage {
  return {
    role: "assistant",
    content: [
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
      ...calls.map(({ id, name, input }) => ({ type: "tool-call" as const, toolCallId: id, toolName: name, input })),
    ],
  };
}

/** An answer that makes calls, which run side by side. */
async function step(
  turn: Turn<ModelMessage>,
  waitMs: number,
  streamMs: number,
  text: string,
  calls: readonly Call[],
): Promise<void> {
  const { draft } = turn.request();
  clock.pass(waitMs);
  draft.push({ text: text || " " } as never);
  // Drafts are written every 200 ms.
  await new Promise((resolve) => setTimeout(resolve, 230));
  clock.pass(streamMs);
  const named = calls.map((one) => ({ ...one, id: `call_${part}_${ids++}` }));
  await draft.commit(assistant(text, named), { model: MODEL } as never);
  for (const { id } of named) {
    await turn.toolStarted(id);
    clock.pass(12);
  }
  let passed = 0;
  for (const { id, ms, output, fails } of named.toSorted((a, b) => a.ms - b.ms)) {
    clock.pass(Math.max(0, ms - passed));
    passed = Math.max(passed, ms);
    await turn.toolEnded(id, fails ? { error: new Error(output) } : { value: output });
  }
  await turn.usage({
    inputTokens: 6000 + ids * 420,
    outputTokens: 180 + text.length,
    cacheReadTokens: 4000,
    cost: { amount: 0.03 + ids * 0.002, currency: "USD" },
  });
}

async function answer(turn: Turn<ModelMessage>, waitMs: number, streamMs: number, text: string): Promise<void> {
  const { draft } = turn.request();
  clock.pass(waitMs);
  draft.push({ text: text.slice(0, 20) } as never);
  // Drafts are written every 200 ms.
  await new Promise((resolve) => setTimeout(resolve, 230));
  clock.pass(streamMs);
  await draft.commit({ role: "assistant", content: [{ type: "text", text }] }, { model: MODEL } as never);
  await turn.usage({
    inputTokens: 7000 + ids * 420,
    outputTokens: 200 + text.length,
    cost: { amount: 0.04, currency: "USD" },
  });
}
