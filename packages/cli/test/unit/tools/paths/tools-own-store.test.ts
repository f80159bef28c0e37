import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { ModelMessage } from "ai";
import { openStore } from "holdfast";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Services } from "../../../../src/agent/services.ts";
import { LocalChat } from "../../../../src/host/local/local-chat.ts";
import { sessionOutputs } from "../../../../src/store/output-folders.ts";
import { walk } from "../../../../src/tools/files/walk.ts";
import { ownStore } from "../../../../src/tools/paths/own-store.ts";
import { decide } from "../../../../src/tools/permission/decide.ts";
import { ProjectRules } from "../../../../src/trust/project-rules.ts";
import { Trust } from "../../../../src/trust/trust.ts";
import { asResolved, call, config, scripted, text } from "../../host/host-stage.ts";

/**
 * The agent's store inside of the folder that it works in, and rules that allow everything. A lock is given away when
 * any descriptor of its file is closed in the process that holds it (S13, S21), so the tools, which run in that
 * process, must not open the store's files: whatever they are called.
 */

let folder: string;
let work: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-own-")));
  work = join(folder, "work");
  mkdirSync(work);
  writeFileSync(join(work, "a.txt"), "needle\n");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What another process is told that wants to write to the session. */
function taken(url: string, id: string): string {
  const program = `
    const { openStore } = await import(${JSON.stringify(import.meta.resolve("holdfast"))});
    try {
      await using store = await openStore(${JSON.stringify(url)}, { recordsToolStarts: true });
      await using session = await store.resume(${JSON.stringify(id)});
      console.log("taken");
    } catch (error) {
      console.log(error.code);
    }`;
  const args = ["--conditions=holdfast-source", "--input-type=module", "-e", program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return stdout.trim() || stderr;
}

interface Agent extends AsyncDisposable {
  readonly id: string;
  /** What the tool answered. */
  call(tool: "read" | "list" | "search" | "write" | "edit", input: object): Promise<string>;
}

async function agentIn(url: string): Promise<Agent> {
  const store = await openStore(url, { app: "holdfast", recordsToolStarts: true });
  const asked: { tool: string; input: object }[] = [];
  let calls = 0;
  const step = () => {
    const next = asked.shift();
    return next ? [call(`c${++calls}`, next.tool, next.input)] : [text("done")];
  };
  const model = scripted(...Array.from({ length: 1000 }, () => step));
  const resolved = asResolved(model);
  const allow = ["*"];
  const services: Services = {
    store,
    config: { ...config, allow },
    asks: "nobody",
    model: async () => resolved,
    outputs: (session) => sessionOutputs(store.url, session)!,
    ending: new AbortController().signal,
    trust: new Trust(store.url),
    servers: null,
    rules: new ProjectRules(null),
  };
  const options = { dialect: "ai-sdk", app: "holdfast", cwd: work } as const;
  const session = await store.create<ModelMessage>(options);
  services.trust.of(session.id).workIn(work);
  const chat = new LocalChat(session, resolved, services, () => {});
  await chat.restore();
  return {
    id: session.id,
    call: async (tool, input) => {
      // Guarded files are allowed by their names only.
      const policy = { allow: [], ask: [], deny: [] };
      allow.push(decide({ name: tool, input }, { cwd: work, policy }).suggestion);
      asked.push({ tool, input });
      await chat.prompt("go");
      await chat.settled();
      const item = chat.state.items.findLast(({ kind }) => kind === "call");
      if (item?.kind !== "call") throw new Error(JSON.stringify(chat.state.failure));
      return `${item.state === "failed" ? "failed: " : ""}${item.output}`;
    },
    [Symbol.asyncDispose]: async () => {
      await chat.close();
      await store.close();
    },
  };
}

const stores = [
  ["a folder", (name: string) => join(work, name)],
  ["a file", (name: string) => `sqlite:${join(work, name)}`],
] as const;

describe.each(stores)("the store is %s in the working folder", (kind, urlOf) => {
  const busy = kind === "a folder" ? "SESSION_BUSY" : "STORE_BUSY";

  test("list, search and read pass it over, and the lease stays", async () => {
    const url = urlOf("store");
    await using agent = await agentIn(url);
    expect(taken(url, agent.id)).toBe(busy);
    const listed = (await agent.call("list", {})).split("\n").filter((name) => !name.startsWith("store.outputs/"));
    expect(listed).toEqual(["a.txt", expect.stringContaining("skipped: they look")]);
    expect(await agent.call("search", { pattern: "." })).toMatch(/^a\.txt:1: needle(\n\[.*\])?$/);
    const files = readdirSync(work, { recursive: true, encoding: "utf8" }).filter((name) => name.startsWith("store"));
    expect(files.length).toBeGreaterThan(3);
    for (const name of files.filter((one) => !one.includes("outputs")))
      expect(await agent.call("read", { path: name }), name).toMatch(/failed: .*the agent's own store/);
    for (const [tool, input] of [
      ["search", { pattern: "." }],
      ["list", {}],
      ["write", { content: "x" }],
      ["edit", { old: "a", new: "b" }],
    ] as const)
      expect(await agent.call(tool, { ...input, path: files[0] }), tool).toMatch(/failed: .*the agent's own store/);
    expect(taken(url, agent.id)).toBe(busy);
  });

  test("nor does another spelling lead there: a link, a way around, a hard link, an address through a link", async (context) => {
    if (process.platform === "win32") context.skip("not run: links need a right on Windows");
    mkdirSync(join(folder, "real"));
    symlinkSync(join(folder, "real"), join(work, "place"));
    const url = urlOf(join("place", "store"));
    await using agent = await agentIn(url);
    const real = join(folder, "real", "store");
    symlinkSync(join(folder, "real"), join(work, "link"));
    const lease = kind === "a folder" ? join(real, "leases", agent.id) : `${real}-lock`;
    const around = relative(work, lease);
    expect(existsSync(lease)).toBe(true);
    linkSync(lease, join(work, "hard.txt"));
    if (kind === "a file") linkSync(real, join(work, "database.txt"));
    const lastPart = kind === "a folder" ? join("store", "leases", agent.id) : "store-lock";
    for (const path of [
      lease,
      around,
      join("link", lastPart),
      join("place", lastPart),
      join("a.txt", "..", around),
      "hard.txt",
    ]) {
      for (const tool of ["read", "search"] as const)
        expect(await agent.call(tool, { path, pattern: "." }), `${tool} ${path}`).toMatch(/failed|Nothing found/);
    }
    // A database that has two names is not opened by anybody.
    if (kind === "a folder") expect(taken(url, agent.id)).toBe(busy);
    expect(await agent.call("search", { pattern: "." })).toMatch(/^a\.txt:1: needle(\n\[.*\])?$/);
    expect(await agent.call("search", { pattern: ".", path: folder })).toMatch(/^a\.txt:1: needle(\n\[.*\])?$/);
    rmSync(join(work, "database.txt"), { force: true });
    expect(taken(url, agent.id)).toBe(busy);
  });
});

test("a walk does not even name the store's files, whatever the rules would allow", async () => {
  const url = join(work, "store");
  await using agent = await agentIn(url);
  expect(existsSync(join(url, "leases", agent.id))).toBe(true);
  const { entries, passed } = await walk(work, 1000, { passOver: () => false, own: ownStore(url) });
  expect(entries.map(({ path }) => relative(work, path))).toEqual(["a.txt"]);
  expect(passed).toBe(1);
});

test("what the agent's own commands have printed can be read, though it lies in the store's folder", async () => {
  await using agent = await agentIn(join(work, "store"));
  const outputs = join(work, "store", "outputs", agent.id);
  mkdirSync(outputs, { recursive: true });
  writeFileSync(join(outputs, "c.1.log"), "printed\n");
  expect(await agent.call("read", { path: join(outputs, "c.1.log") })).toBe("printed\n");
  expect(await agent.call("search", { path: outputs, pattern: "prin" })).toContain("printed");
  // A second name among the outputs of a file that carries a lock.
  const [lease] = readdirSync(join(work, "store", "leases"));
  linkSync(join(work, "store", "leases", lease!), join(outputs, "c.2.log"));
  expect(await agent.call("read", { path: join(outputs, "c.2.log") })).toMatch(/own store|not allow/u);
  expect(taken(join(work, "store"), agent.id)).toBe("SESSION_BUSY");
});

test("AGENTS.md that is a link to a file of the store is not read", async () => {
  const url = join(work, "store");
  execFileSync("git", ["init", "-q", work]);
  await using agent = await agentIn(url);
  symlinkSync(join(url, "leases", agent.id), join(work, "AGENTS.md"));
  expect(await agent.call("list", {})).toContain("a.txt");
  expect(taken(url, agent.id)).toBe("SESSION_BUSY");
});
