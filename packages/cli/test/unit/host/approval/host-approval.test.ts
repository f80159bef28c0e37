import {
  existsSync,
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
import type { Store } from "holdfast";
import { expect, test } from "vitest";
import { ApprovalGuard } from "../../../../src/agent/approval-guard.ts";
import type { AgentEvents } from "../../../../src/agent/events.ts";
import { AgentRuntime } from "../../../../src/agent/runtime.ts";
import type { Services } from "../../../../src/agent/services.ts";
import type { Config } from "../../../../src/config.ts";
import type { Chat, PermissionAsk } from "../../../../src/host/host.ts";
import { APP } from "../../../../src/store/app.ts";
import { writeFile } from "../../../../src/tools/files/write.ts";
import { ProjectRules } from "../../../../src/trust/project-rules.ts";
import { Trust } from "../../../../src/trust/trust.ts";
import { call, config, Stage, text } from "../host-stage.ts";

async function until(chat: Chat, status: Chat["state"]["status"]): Promise<void> {
  while (chat.state.status !== status) await chat.settled();
}

/**
 * One call is asked about and approved; `meanwhile` happens while the question stands. Answers the request, and what
 * the model is told.
 */
async function approved(
  stage: Stage,
  calls: readonly (readonly [name: string, input: object])[],
  meanwhile: () => void = () => {},
): Promise<{ readonly asks: readonly PermissionAsk[]; readonly told: string }> {
  const made = calls.map(([name, input], i) => call(`c${i}`, name, input));
  const chat = await stage.chat([made, [text("done")]], { asks: "person" });
  await chat.prompt("go");
  await until(chat, "waiting");
  const { asks } = chat.state;
  meanwhile();
  for (const ask of asks) await chat.answer(ask.call, "allow");
  await until(chat, "idle");
  const told = JSON.stringify(chat.model.prompts.at(-1)).split('"tool-result"').slice(1).join("");
  await chat.close();
  return { asks, told };
}

/** Folders beside the one that the agent works in. */
class Outside implements Disposable {
  readonly #root = mkdtempSync(join(tmpdir(), "holdfast-outside-"));

  folder(name: string): string {
    mkdirSync(join(this.#root, name));
    return join(this.#root, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}

const NOT_RUN = /Not run: .*Nothing was done/;

test("an approved write does exactly what was approved; the request names the real path and what it replaces", async () => {
  await using stage = new Stage();
  mkdirSync(join(stage.work, "real"));
  symlinkSync("real", join(stage.work, "link"));
  writeFileSync(join(stage.work, "real", "a.txt"), "old");
  const { asks, told } = await approved(stage, [["write", { path: "link/a.txt", content: "new" }]]);
  const path = join(stage.work, "real", "a.txt");
  expect(asks).toMatchObject([{ path, cwd: stage.work, target: { kind: "file", bytes: 3 } }]);
  expect(asks[0]!.digest).toMatch(/^[0-9a-f]{64}$/);
  expect(readFileSync(path, "utf8")).toBe("new");
  expect(told).not.toMatch(NOT_RUN);
});

test.each([
  ["write", { content: "evil" }],
  ["edit", { old: "text", new: "evil" }],
  ["read", {}],
] as const)(
  "the folder of an approved %s is swapped for a link while the question stands: it fails, and nothing is touched",
  async (name, input) => {
    await using stage = new Stage();
    using outside = new Outside();
    const [folder, precious] = [outside.folder("folder"), outside.folder("precious")];
    for (const one of [folder, precious]) writeFileSync(join(one, "a.txt"), "text");
    writeFileSync(join(precious, "a.txt"), "a secret text");
    const { told } = await approved(stage, [[name, { path: join(folder, "a.txt"), ...input }]], () => {
      rmSync(folder, { recursive: true });
      symlinkSync(precious, folder);
    });
    expect(told).toMatch(/Not run: Its path now leads to .*precious/);
    expect(told).not.toContain("a secret text");
    expect(readFileSync(join(precious, "a.txt"), "utf8")).toBe("a secret text");
  },
);

const SWAPS: readonly (readonly [what: string, swap: (file: string, other: string) => void])[] = [
  ["the file is swapped for a link", (file, other) => symlinkSync(other, removed(file))],
  ["the file is swapped for a hard link", (file, other) => linkSync(other, removed(file))],
  ["the file gets other bytes", (file) => writeFileSync(file, "text, but another")],
  ["the file is gone", (file) => void removed(file)],
  ["a folder is in its place", (file) => mkdirSync(removed(file))],
];

function removed(file: string): string {
  rmSync(file);
  return file;
}

test.each(SWAPS)("%s while a write and an edit of it wait: neither runs", async (_, swap) => {
  for (const [name, input] of [
    ["write", { path: "a.txt", content: "evil" }],
    ["edit", { path: "a.txt", old: "text", new: "evil" }],
  ] as const) {
    await using stage = new Stage();
    const [file, other] = [join(stage.work, "a.txt"), join(stage.work, "other.txt")];
    writeFileSync(file, "text");
    writeFileSync(other, "text");
    const { told } = await approved(stage, [[name, input]], () => swap(file, other));
    expect(told).toMatch(NOT_RUN);
    expect(readFileSync(other, "utf8")).toBe("text");
    if (existsSync(file) && statSync(file).isFile()) expect(readFileSync(file, "utf8")).not.toContain("evil");
  }
});

test("a file that was to be new is there by now: it is not replaced", async () => {
  await using stage = new Stage();
  const file = join(stage.work, "a.txt");
  const { asks, told } = await approved(stage, [["write", { path: "a.txt", content: "evil" }]], () => {
    writeFileSync(file, "somebody's");
  });
  expect(asks[0]!.target).toEqual({ kind: "none" });
  expect(told).toMatch(NOT_RUN);
  expect(readFileSync(file, "utf8")).toBe("somebody's");
});

test("the working folder is another one by now: an approved command does not run in it", async () => {
  await using stage = new Stage();
  const { told } = await approved(stage, [["shell", { command: "echo ran > log.txt" }]], () => {
    renameSync(stage.work, `${stage.work}-moved`);
    mkdirSync(stage.work);
  });
  expect(told).toMatch(NOT_RUN);
  expect(existsSync(join(stage.work, "log.txt"))).toBe(false);
  rmSync(`${stage.work}-moved`, { recursive: true });
});

test("several approved changes of one file run one after the other, as they were asked", async () => {
  await using stage = new Stage();
  writeFileSync(join(stage.work, "a.txt"), "one two three");
  const { told } = await approved(stage, [
    ["edit", { path: "a.txt", old: "one", new: "1" }],
    ["edit", { path: "a.txt", old: "two", new: "2" }],
    ["edit", { path: "a.txt", old: "three", new: "3" }],
  ]);
  expect(told).not.toMatch(NOT_RUN);
  expect(readFileSync(join(stage.work, "a.txt"), "utf8")).toBe("1 2 3");
});

test("a member of the input that the tool does not know changes nothing: what was asked is what runs", async () => {
  await using stage = new Stage();
  const { told } = await approved(stage, [["shell", { command: "echo ran > log.txt", description: "harmless" }]]);
  expect(told).not.toMatch(NOT_RUN);
  expect(readFileSync(join(stage.work, "log.txt"), "utf8")).toBe("ran\n");
});

test("a call that a rule allows is judged again when it runs: its path was swapped for a link before", async () => {
  await using stage = new Stage();
  using outside = new Outside();
  const precious = outside.folder("precious");
  mkdirSync(join(stage.work, "sub"));
  const store = await stage.store();
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: stage.work });
  const services = servicesOf(store, { ...config, allow: ["write"] });
  services.trust.of(session.id).workIn(stage.work);
  const agent = new AgentRuntime(session, services, EVENTS);
  const input = { path: "sub/a.txt", content: "evil" };
  expect(agent.decide("write", input).verdict).toBe("allow");
  const { check } = agent.approvals.watch("c0", { name: "write", input });
  await check();
  rmSync(join(stage.work, "sub"), { recursive: true });
  symlinkSync(precious, join(stage.work, "sub"));
  await expect(check()).rejects.toThrow(NOT_RUN);
  await store.close();
});

test("P1: approved, and killed before it ran: the next process runs it if it is still the same, and else does not", async () => {
  for (const isSwapped of [false, true]) {
    await using stage = new Stage();
    const file = join(stage.work, "a.txt");
    writeFileSync(file, "text");
    const store = await stage.store();
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: stage.work });
    const input = { path: "a.txt", content: "new" };
    const turn = await session.startTurn({ role: "user", content: "go" });
    const made = { type: "tool-call" as const, toolCallId: "c0", toolName: "write", input };
    const request = { type: "tool-approval-request" as const, approvalId: "p0", toolCallId: "c0" };
    const { id: message } = await turn.append({ role: "assistant", content: [made, request] });
    new Trust(store.url).of(session.id).approve({ id: "c0", message, name: "write", input });
    const approval = new ApprovalGuard(
      session,
      { cwd: () => stage.work, own: null, editor: () => null },
      () => NO_RULE,
    );
    await approval.record(new Map([["c0", await approval.look({ name: "write", input })]]));
    await turn.append({
      role: "tool",
      content: [{ type: "tool-approval-response", approvalId: "p0", approved: true }],
    });
    await store.close();
    if (isSwapped) writeFileSync(file, "another text");
    const chat = await stage.chat([[text("done")]], { asks: "person", id: session.id });
    await chat.finish();
    await chat.settled();
    expect(NOT_RUN.test(JSON.stringify(chat.model.prompts.at(-1)))).toBe(isSwapped);
    expect(readFileSync(file, "utf8")).toBe(isSwapped ? "another text" : "new");
  }
});

test("swapped at the last moment, behind the first check: nothing is written, and nothing is left behind", async () => {
  await using stage = new Stage();
  using outside = new Outside();
  const [folder, precious] = [outside.folder("folder"), outside.folder("precious")];
  const input = { path: join(folder, "a.txt"), content: "evil" };
  const refused = { check: () => Promise.reject(new Error("Not this one.")), changed: async () => {} };
  await expect(writeFile({ cwd: stage.work }, input, refused)).rejects.toThrow("Not this one.");
  expect(readdirSync(folder)).toEqual([]);
  const moved = join(precious, "moved");
  const swapping = {
    check: async () => {
      renameSync(folder, moved);
      symlinkSync(moved, folder);
    },
    changed: async () => {},
  };
  await expect(writeFile({ cwd: stage.work }, input, swapping)).rejects.toThrow("a symbolic link was just added to it");
  expect(readdirSync(moved)).toEqual([]);
});

const NO_RULE = { verdict: "ask", suggestion: "", isAllowable: true, summary: "", denial: "" } as const;

const ignore = (): void => {};
const EVENTS: AgentEvents = {
  ...{ started: ignore, ended: ignore, output: ignore, delegated: ignore, startedBelow: ignore, usedBelow: ignore },
  ...{
    denied: ignore,
    show: ignore,
    retrying: ignore,
    compacting: ignore,
    compacted: ignore,
    cutOff: ignore,
    used: ignore,
    warned: ignore,
  },
};

function servicesOf(store: Store, settings: Config): Services {
  const model = (): Promise<never> => Promise.reject(new Error("there is no model"));
  return {
    store,
    config: settings,
    asks: "person",
    model,
    outputs: () => "/nowhere",
    ending: new AbortController().signal,
    trust: new Trust(store.url),
    servers: null,
    rules: new ProjectRules(null),
  };
}
