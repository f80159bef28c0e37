import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { methods, ndJsonStream, type SessionUpdate } from "@agentclientprotocol/sdk";
import { seededRandom } from "@holdfast/testkit/internal/simulation";
import { expect, test } from "vitest";
import { connectClient, shown, type TestClient } from "../in-memory.ts";

/** examples/acp-agent.ts as an editor runs it: over pipes, with the SDK's own client, killed without a warning. */

const EXAMPLE = resolve(import.meta.dirname, "../../../../examples/acp-agent.ts");
const { session } = methods.agent;
const said = (text: string) => [{ type: "text" as const, text }];

interface Place extends Disposable {
  readonly path: string;
  start(answer?: () => string | null): Promise<TestClient & { kill(): Promise<void>; leave(): Promise<number | null> }>;
  readonly notes: string;
}

function place(): Place {
  const path = mkdtempSync(join(tmpdir(), "holdfast-durable-"));
  const children = new Set<ChildProcessWithoutNullStreams>();
  return {
    path,
    get notes() {
      const file = join(path, "notes.txt");
      return existsSync(file) ? readFileSync(file, "utf8") : "";
    },
    start: async (answer) => {
      const child = spawn(process.execPath, ["--conditions=holdfast-source", EXAMPLE, join(path, "store")]);
      children.add(child);
      let stderr = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderr += text;
      });
      const ended = new Promise<number | null>((done) => child.once("close", done));
      const stream = ndJsonStream(
        Writable.toWeb(child.stdin),
        Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>,
      );
      const client = await connectClient(stream, answer);
      return {
        ...client,
        kill: async () => {
          child.kill("SIGKILL");
          await ended;
        },
        leave: async () => {
          child.stdin.end();
          const code = await ended;
          expect(stderr).toBe("");
          return code;
        },
      };
    },
    [Symbol.dispose]: () => {
      for (const child of children) child.kill("SIGKILL");
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Waits until it holds; a test that waits in vain runs into its time limit. */
const eventually = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await passed(10);
};

/** The SDK's client may hand over the last update after the answer: a second request lets it catch up. */
async function load({ agent }: TestClient, sessionId: string, cwd: string): Promise<void> {
  await agent.request(session.load, { sessionId, cwd, mcpServers: [] });
  await agent.request(session.list, {});
}

const texts = (updates: readonly SessionUpdate[]): string =>
  updates
    .map((one) => (one.sessionUpdate === "agent_message_chunk" && "text" in one.content ? one.content.text : ""))
    .join("");

test("killed while it streams: what the client saw is replayed, and the agent knows what was said", async () => {
  using here = place();
  const first = await here.start();
  const { sessionId } = await first.agent.request(session.new, { cwd: here.path, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  first.agent.request(session.prompt, { sessionId, prompt: said("slow") }).catch(() => undefined);
  await eventually(() => first.updates.length > 10);
  await first.kill();

  const second = await here.start();
  expect((await second.agent.request(session.list, {})).sessions).toMatchObject([{ sessionId, cwd: here.path }]);
  await load(second, sessionId, here.path);
  expect(texts(second.updates).slice(0, texts(first.updates).length)).toBe(texts(first.updates));
  expect(shown(second.updates).filter((line) => line.startsWith("user"))).toEqual([
    "user_message_chunk hello",
    "user_message_chunk slow",
  ]);
  const from = second.updates.length;
  await second.agent.request(session.prompt, { sessionId, prompt: said("and now?") });
  // The SDK's client may hand over the last update after the answer.
  await eventually(() => texts(second.updates.slice(from)) !== "");
  expect(texts(second.updates.slice(from))).toBe('You said "and now?". Before that: hello, slow.');
  expect(await second.leave()).toBe(0);
});

test("killed while a permission is open: nothing ran, the call is shown as failed, and it is asked again", async () => {
  using here = place();
  const first = await here.start(() => null);
  const { sessionId } = await first.agent.request(session.new, { cwd: here.path, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("write one") }).catch(() => undefined);
  await eventually(() => first.asked.length === 1);
  await first.kill();

  const second = await here.start(() => "yes");
  await load(second, sessionId, here.path);
  expect(shown(second.updates).at(-1)).toBe(
    'tool_call Append "one" failed: Interrupted. Waiting for approval, has not run.',
  );
  expect([here.notes, second.asked]).toEqual(["", []]);
  await second.agent.request(session.prompt, { sessionId, prompt: said("continue") });
  expect(second.asked).toHaveLength(1);
  expect(here.notes).toBe("one\n");
  expect(await second.leave()).toBe(0);
});

test("killed while a tool runs: its outcome is unknown, and it is not run again", async () => {
  using here = place();
  const first = await here.start();
  const { sessionId } = await first.agent.request(session.new, { cwd: here.path, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("write slowly") }).catch(() => undefined);
  await eventually(() => here.notes !== "");
  await first.kill();

  const second = await here.start();
  await load(second, sessionId, here.path);
  expect(shown(second.updates).at(-1)).toMatch(/failed: Interrupted\. May have run/);
  await second.agent.request(session.prompt, { sessionId, prompt: said("continue") });
  await eventually(() => texts(second.updates).includes("may have run"));
  expect(here.notes).toBe("slowly\n");
  expect(await second.leave()).toBe(0);
});

const KILLS = 8;
const seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);

test(`P2: killed ${KILLS} times at any instant, each load shows what was seen, and no line is written that was not asked for`, async () => {
  console.log(`seed ${seed}; to repeat: HOLDFAST_SEED=${seed}`);
  const random = seededRandom(seed);
  using here = place();
  let agent = await here.start();
  const { sessionId } = await agent.agent.request(session.new, { cwd: here.path, mcpServers: [] });
  let prompts = 0;
  let seen = "";
  for (let kills = 0; kills < KILLS; kills++) {
    prompts += 1;
    const from = agent.updates.length;
    agent.agent.request(session.prompt, { sessionId, prompt: said(`write line ${prompts}`) }).catch(() => undefined);
    agent.agent.request(session.prompt, { sessionId, prompt: said(`word ${prompts}`) }).catch(() => undefined);
    await passed(random.below(25));
    await agent.kill();
    seen += texts(agent.updates.slice(from));
    agent = await here.start();
    await load(agent, sessionId, here.path);
    const replayed = texts(agent.updates);
    const where = `seed ${seed}, kill ${kills}`;
    expect(replayed.startsWith(seen), where).toBe(true);
    seen = replayed;
    const calls = agent.updates.filter(({ sessionUpdate }) => sessionUpdate === "tool_call");
    const ended = new Set(
      agent.updates.flatMap((one) =>
        "toolCallId" in one && (one.status === "completed" || one.status === "failed") ? [one.toolCallId] : [],
      ),
    );
    expect(ended.size, where).toBe(calls.length);
    // Each line at most once, and only with its call on record.
    const lines = here.notes.split("\n").filter(Boolean);
    expect(new Set(lines).size, where).toBe(lines.length);
    for (const line of lines)
      expect(
        calls.some((call) => "title" in call && call.title === `Append "${line}"`),
        `${line}, ${where}`,
      ).toBe(true);
  }
  expect(await agent.leave()).toBe(0);
});
