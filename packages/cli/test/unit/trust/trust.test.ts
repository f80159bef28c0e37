import { spawn } from "node:child_process";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelMessage } from "ai";
import { openStore } from "holdfast";
import { afterEach, beforeEach, expect, test } from "vitest";
import { assertMayRun } from "../../../src/agent/open-calls.ts";
import { sessionOutputs } from "../../../src/store/output-folders.ts";
import { decide } from "../../../src/tools/permission/decide.ts";
import { exitOf, filesOfProcess, outputOf } from "../../../src/tools/shell/output-files.ts";
import { identify } from "../../../src/tools/shell/process-groups.ts";
import { storeIdentity } from "../../../src/trust/state-folder.ts";
import { Trust } from "../../../src/trust/trust.ts";
import { folderFor } from "../../../src/trust/work-folder.ts";
import { hostileSession } from "../../hostile-store.ts";
import { call, heard, Stage, text } from "../host/host-stage.ts";

const ID = "0199aaaa-0001-7bbb-8000-000000000001";
const CALL = { id: "c1", message: "m1", name: "shell", input: { command: "ls", timeoutSeconds: 3 } };
const PROCESS = { pid: 7, started: "boot 1", group: true } as const;

let place: string;
let store: string;
let kept: string;
const trust = (url = store): Trust =>
  new Trust(url, { env: { XDG_STATE_HOME: join(place, "state") }, platform: "linux", home: () => place });

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "holdfast-trust-"));
  store = join(place, "store");
  mkdirSync(store);
  kept = join(place, "state", "holdfast", "trust", storeIdentity(store)!);
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function say(): void {
  const said = trust().of(ID);
  said.workIn("/work");
  said.allow("write");
  said.approve(CALL);
  said.started(PROCESS);
  expect(said.unkept).toBeNull();
}

const heardIn = (all: Trust, id = ID): unknown => {
  const said = all.of(id);
  return [said.folder, said.rules, said.hasApproved(CALL), said.hasStarted(PROCESS)];
};
const EVERYTHING = ["/work", ["write"], true, true];
const NOTHING = [null, [], false, false];

test("what this user says of a session counts in the next process, for this store and this session only", () => {
  say();
  expect(heardIn(trust())).toEqual(EVERYTHING);
  expect(heardIn(trust(), "0199aaaa-0001-7bbb-8000-000000000002")).toEqual(NOTHING);
  mkdirSync(join(place, "other"));
  expect(heardIn(trust(join(place, "other")))).toEqual(NOTHING);
  // By whatever name it is reached.
  symlinkSync(store, join(place, "link"));
  expect(heardIn(trust(join(place, "link")))).toEqual(EVERYTHING);
  renameSync(store, `${store}.old`);
  mkdirSync(store);
  expect(heardIn(trust())).toEqual(NOTHING);
});

test("an approval is for one call of one message, with one input, in whatever order its members stand", () => {
  say();
  const said = trust().of(ID);
  expect(said.hasApproved({ ...CALL, input: { timeoutSeconds: 3, command: "ls" } })).toBe(true);
  const others = [{ id: "c2" }, { message: "m2" }, { name: "write" }, { input: { command: "ls", timeoutSeconds: 4 } }];
  for (const other of others) expect(said.hasApproved({ ...CALL, ...other }), JSON.stringify(other)).toBe(false);
  expect(said.hasStarted({ ...PROCESS, started: "boot 2" })).toBe(false);
});

test("it is kept for this user alone, whole, and without traces of the writing", () => {
  const before = process.umask(0);
  try {
    say();
  } finally {
    process.umask(before);
  }
  expect(readdirSync(kept)).toEqual([`${ID}.json`]);
  expect(statSync(kept).mode & 0o777).toBe(0o700);
  expect(statSync(join(kept, `${ID}.json`)).mode & 0o777).toBe(0o600);
  trust().forget(ID);
  expect(readdirSync(kept)).toEqual([]);
});

const file = (): string => join(kept, `${ID}.json`);
/** It is elsewhere now, and a link leads there. */
function link(path: string): void {
  renameSync(path, join(place, "moved"));
  symlinkSync(join(place, "moved"), path);
}
const mischief: readonly [string, () => void][] = [
  ["the file is a link", () => link(file())],
  ["the file has a second name", () => linkSync(file(), join(place, "second"))],
  ["others may write to the file", () => chmodSync(file(), 0o620)],
  ["the file is no JSON", () => writeFileSync(file(), "{")],
  ["the file is of another session", () => writeFileSync(file(), readFileSync(file(), "utf8").replace(ID, "x"))],
  ["the file is very long", () => writeFileSync(file(), " ".repeat(5_000_000))],
  ["a folder is a link", () => link(kept)],
  ["a folder above is a link", () => link(join(place, "state", "holdfast", "trust"))],
  ["others may write to a folder", () => chmodSync(join(place, "state", "holdfast", "trust"), 0o770)],
];

test.each(mischief)("%s: it does not count, and that is said", (_, make) => {
  say();
  make();
  const all = trust();
  expect(heardIn(all)).toEqual(NOTHING);
  expect(all.warnings).toHaveLength(1);
});

test("where nothing can be kept, it counts for this process, and that is said", () => {
  writeFileSync(join(place, "state"), "");
  const said = trust().of(ID);
  said.allow("write");
  expect(said.rules).toEqual(["write"]);
  expect(said.unkept).not.toBeNull();
});

test("a database is known by its address, whatever the password", () => {
  const identities = ["one@h/d", "two@h/d", "h/d?password=x&a=1", "h/d?a=1&sslpassword=y"].map((rest) =>
    storeIdentity(`postgres://u:${rest.includes("@") ? rest : `@${rest}`}`),
  );
  expect(identities[0]).toBe(identities[1]);
  expect(identities[2]).toBe(identities[3]);
  expect(identities[0]).not.toBe(identities[2]);
  expect(storeIdentity("memory:")).toBeNull();
});

test("two databases are two, also if their addresses contain an @ behind the host", () => {
  const addresses = ["h:1/one?app=me@here", "h:1/two?app=me@here", "h:2/one?app=me@here", "g:1/one?app=me@here"];
  const identities = addresses.map((rest) => storeIdentity(`other://${rest}`));
  expect(new Set(identities).size).toBe(addresses.length);
});

test("the agent cannot write there unasked, though it works in the home folder", () => {
  const state = join(place, ".local/state/holdfast");
  const policy = { allow: ["write"], ask: [], deny: [] };
  const write = (path: string) => decide({ name: "write", input: { path } }, { cwd: place, policy, state }).verdict;
  expect([write(join(state, "trust", "x.json")), write(join(place, "x.json"))]).toEqual(["ask", "allow"]);
});

test("always in this session: it is outside of the journal, holds over a restart, and a fork asks again", async () => {
  await using stage = new Stage();
  const steps = [[call("c1", "shell", { command: "echo one" })], [text("done")]];
  const first = await stage.chat(steps, { asks: "person" });
  const asked = heard(first).until("permission.asked");
  await first.prompt("go");
  await asked;
  await first.answer("c1", "always");
  await first.settled();
  expect(first.state.items).toContainEqual(expect.objectContaining({ kind: "call", state: "done" }));
  await first.close();
  expect((await first.store.read(first.id)).attributes.notes).not.toHaveProperty("allow");
  await first.store.close();
  const second = await stage.chat(steps, { asks: "nobody", id: first.id });
  await second.prompt("again");
  await second.settled();
  expect(second.state.items.filter((item) => item.kind === "call").map(({ state }) => state)).toEqual(["done", "done"]);
  const fork = await second.store.fork<ModelMessage>(second.id);
  expect(new Trust(second.store.url).of(fork.id).rules).toEqual([]);
});

test.each([
  ["c1", [0, 1, 2, 3]],
  ["c2", [0, 1, 2, 3]],
  ["c1", [0, 2, 3, 1]],
  ["c2", [0, 2, 3, 1]],
])(
  "one approval id for two calls of a foreign journal: what a person refused (%s) does not run (%j)",
  async (no, order) => {
    await using stage = new Stage();
    const files = await stage.store();
    const session = await files.create<ModelMessage>({ dialect: "ai-sdk", cwd: stage.work });
    const turn = await session.startTurn({ role: "user", content: "go" });
    const made = (id: string) => [
      { type: "tool-call" as const, toolCallId: id, toolName: "shell", input: { command: `touch ${id}` } },
      { type: "tool-approval-request" as const, approvalId: "same", toolCallId: id },
    ];
    const parts = [...made("c1"), ...made("c2")];
    await turn.append({ role: "assistant", content: order.map((at) => parts[at]!) });
    await turn.suspend({ reason: "permission", calls: ["c1", "c2"] });
    await files.close();
    const chat = await stage.chat([[text("done")]], { asks: "person", id: session.id });
    expect(chat.state.asks.map((ask) => ask.call)).toEqual(["c1", "c2"]);
    for (const ask of chat.state.asks) await chat.answer(ask.call, ask.call === no ? "deny" : "allow");
    while (chat.state.status === "running" || chat.state.status === "waiting") await chat.settled();
    expect(readdirSync(stage.work)).not.toContain(no);
  },
);

test("a call may run if the rules allow it, or if this user approved a call with the same input", () => {
  const call = { name: "shell", input: { command: "ls", timeoutSeconds: 3 } };
  const ask = { verdict: "ask", denial: "not approved" } as const;
  const others = [
    { ...call, input: { command: "ls" } },
    { ...call, name: "write" },
  ];
  expect(() => assertMayRun(call, ask, others)).toThrow("not approved");
  expect(() => assertMayRun(call, { ...ask, verdict: "deny" }, [call])).toThrow("not approved");
  assertMayRun(call, ask, [...others, { ...call, input: { timeoutSeconds: 3, command: "ls" } }]);
  assertMayRun(call, { ...ask, verdict: "allow" }, []);
});

test("an approval that only the journal has runs nothing; the claim is shown", async () => {
  await using stage = new Stage();
  const hostile = { cwd: stage.work, command: "touch made", isApproved: true, allow: ["*"] };
  const id = await hostileSession(stage.folder, hostile);
  const chat = await stage.chat([[text("done")]], { id });
  expect(chat.state.damage).toEqual([
    expect.stringContaining('without asking: "*"'),
    expect.stringContaining("approved: shell: touch made"),
  ]);
  await chat.finish();
  await chat.settled();
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "done" });
  expect(readdirSync(stage.work)).toEqual([]);
});

test("a process that only the journal names is left alone", async () => {
  await using stage = new Stage();
  const victim = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  try {
    const pid = victim.pid!;
    const named = { pid, started: (await identify(pid))!, group: true } as const;
    const id = await hostileSession(stage.folder, { cwd: stage.work, command: "sleep 300", process: named });
    const chat = await stage.chat([[text("done")]], { id });
    expect(chat.state.interruption?.calls).toMatchObject([{ process: { pid, running: false } }]);
    await chat.finish({ processes: "stop" });
    await chat.settled();
    expect(await identify(pid)).toBe(named.started);
  } finally {
    victim.kill("SIGKILL");
  }
});

test("the folder: one that only the journal names is refused; this user's word counts from then on", async () => {
  await using stage = new Stage();
  const id = await hostileSession(stage.folder, { cwd: stage.work });
  const first = await stage.host();
  await expect(first.open(id)).rejects.toMatchObject({ code: "FOLDER_UNKNOWN" });
  expect((await first.latest(stage.work))?.state.cwd).toBe(stage.work);
  await first.close();
  const second = await stage.host();
  expect((await second.open(id)).state.cwd).toBe(stage.work);
  await second.close();
  const third = await stage.host();
  expect((await third.open(id, { here: true })).state.cwd).toBe(process.cwd());
});

test.each([
  ["of another user's choice", "/etc"],
  ["with a NUL", "a\0b"],
  ["that is the folder above", ".."],
])("a folder %s is not taken from a journal", (_, journal) => {
  const folders = { session: ID, journal, known: null, now: place, isHere: false };
  expect(() => folderFor(folders)).toThrow(expect.objectContaining({ code: "FOLDER_UNKNOWN" }));
  expect(folderFor({ ...folders, journal: "." })).toBe(place);
});

test.each([[["outputs"]], [["outputs", ID]]])("outputs: %j as a link is refused", async (names) => {
  const path = join(store, ...names);
  mkdirSync(join(path, ".."), { recursive: true });
  symlinkSync(place, path);
  expect(() => sessionOutputs(store, ID)).toThrow(expect.objectContaining({ code: "PATH_UNSAFE" }));
  expect(readdirSync(place).sort()).toEqual(["store"]);
});

test("files of outputs: no link, no second name, no pipe, and nothing long for a status", async () => {
  const secret = join(place, "secret.txt");
  writeFileSync(secret, "0\n");
  const files = { log: join(store, "c.1.log"), exit: join(store, "c.1.exit") };
  for (const path of [files.log, files.exit]) symlinkSync(secret, path);
  expect([outputOf(files), exitOf(files)]).toEqual(["", null]);
  for (const path of [files.log, files.exit]) rmSync(path);
  for (const path of [files.log, files.exit]) linkSync(secret, path);
  expect([outputOf(files), exitOf(files)]).toEqual(["", null]);
  rmSync(files.exit);
  writeFileSync(files.exit, `${" ".repeat(100)}0\n`);
  expect(exitOf(files)).toBeNull();
  symlinkSync(secret, join(store, "other.2.log"));
  expect(filesOfProcess(store, "c", 2).log).toBe(join(store, "c.2.log"));
});

test("a session with an outputs folder that others may write to is closed to them when it is opened", async () => {
  await using files = await openStore(join(place, "s"), { recordsToolStarts: true });
  mkdirSync(join(place, "s", "outputs"));
  chmodSync(join(place, "s", "outputs"), 0o777);
  sessionOutputs(files.url, ID);
  expect(statSync(join(place, "s", "outputs")).mode & 0o777).toBe(0o700);
});
