import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { connectClient, shown } from "../in-memory.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");
const { session } = methods.agent;

/** What the later blocks take for granted. */
const READER = `
import { type AgentContext, methods } from "@agentclientprotocol/sdk";
import { durable, type DurableStream, type InterruptedTurn } from "@holdfast/acp";
import { type Agent, AgentSideConnection, ndJsonStream } from "acp-sdk-0.4";
import type { Store } from "holdfast";
declare const MyAgent: new (connection: AgentSideConnection) => Agent;
declare const [output, input]: [WritableStream<Uint8Array>, ReadableStream<Uint8Array>];
declare const store: Store;
declare const stream: DurableStream<unknown>;
declare const client: AgentContext;
declare const sessionId: string;
declare const response: { readonly id: string };
declare const interruption: InterruptedTurn | null;
declare const context: string[];
void [AgentSideConnection, methods, ndJsonStream, durable, MyAgent, output, input, store, stream, client, sessionId, response, interruption, context];
`;

function place(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "holdfast-guide-"));
  symlinkSync(join(ROOT, "node_modules"), join(path, "node_modules"));
  writeFileSync(join(path, "package.json"), '{ "type": "module" }');
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

test("docs/guides/acp-agents.md: the blocks compile; the agent needs ten lines at most, is killed, and remembers", async () => {
  using here = place();
  const guide = readFileSync(join(ROOT, "docs/guides/acp-agents.md"), "utf8");
  const [program = "", ...blocks] = [...guide.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
  expect(program.split("\n").filter((line) => line.endsWith("// +")).length).toBeLessThanOrEqual(10);
  const file = join(here.path, "agent.ts");
  writeFileSync(file, program);
  for (const [n, code] of blocks.entries())
    writeFileSync(
      join(here.path, `block-${n}.ts`),
      `${READER}\nexport async function block(): Promise<void> {\n${code}\n}\n`,
    );
  writeFileSync(
    join(here.path, "tsconfig.json"),
    JSON.stringify({
      extends: join(ROOT, "tsconfig.test.json"),
      compilerOptions: { typeRoots: [join(ROOT, "node_modules/@types")] },
      include: [join(here.path, "*.ts")],
    }),
  );
  let said = "";
  try {
    execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", here.path], {
      encoding: "utf8",
    });
  } catch (error) {
    said = String((error as { stdout?: unknown }).stdout ?? error);
  }
  expect(said).toBe("");

  const start = async () => {
    const child = spawn(process.execPath, ["--conditions=holdfast-source", file], { cwd: here.path });
    const ended = new Promise((done) => child.once("close", done));
    const client = await connectClient(
      ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>),
    );
    return { ...client, child, ended };
  };
  const first = await start();
  const { sessionId } = await first.agent.request(session.new, { cwd: here.path, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text: "the word is heron" }] });
  first.child.kill("SIGKILL");
  await first.ended;
  const second = await start();
  await second.agent.request(session.load, { sessionId, cwd: here.path, mcpServers: [] });
  await second.agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text: "which word?" }] });
  await second.agent.request(session.list, {});
  expect(shown(second.updates)[0]).toBe("user_message_chunk the word is heron");
  expect(shown(second.updates).at(-1)).toMatch(/> User: the word is heron[\s\S]*which word\?/);
  second.child.stdin.end();
  expect(await second.ended).toBe(0);
});
