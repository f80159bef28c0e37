import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ServerStage } from "../server-stage.ts";

/** docs/openapi.json as its users have it: through two generators, the compiler, and a program that records a turn. */

const ROOT = resolve(import.meta.dirname, "../../../..");
const DOCUMENT = join(ROOT, "docs/openapi.json");
/** Has its own lock file: the generators need TypeScript 5, and the repository has 7. */
const GENERATORS = join(ROOT, "scripts/openapi-clients");
const folder = mkdtempSync(join(tmpdir(), "holdfast-clients-"));

beforeAll(() => {
  if (!existsSync(join(GENERATORS, "node_modules/.package-lock.json")))
    run("npm", ["ci", "--ignore-scripts"], GENERATORS);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(program: string, args: readonly string[], cwd = folder): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  expect(status, `${program} ${args.join(" ")}\n${stdout}${stderr}`).toBe(0);
  return stdout + stderr;
}

function compile(program: string): void {
  writeFileSync(join(folder, "program.ts"), program);
  const options = ["--strict", "--exactOptionalPropertyTypes", "false", "--skipLibCheck", "--target", "es2024"];
  const modules = ["--module", "commonjs", "--moduleResolution", "bundler", "--outDir", "built", "--types", ""];
  run(join(ROOT, "node_modules/.bin/tsc"), [...options, ...modules, "program.ts"]);
}

test("openapi-typescript: the document is valid, and its types tell a recorder's id from none", () => {
  const generate = join(GENERATORS, "node_modules/openapi-typescript/bin/cli.js");
  run(process.execPath, [generate, DOCUMENT, "--output", "paths.ts"]);
  compile(`
import type { components, paths } from "./paths";
type Created = paths["/recordings"]["post"]["responses"][201]["content"]["application/json"];
type State = paths["/sessions/{id}/recording"]["get"]["responses"][200]["content"]["application/json"];
type Full = paths["/recordings"]["post"]["responses"][507]["content"]["application/problem+json"];
export const own = (created: Created): string => created.recorder;
export const perhaps = (state: State): string => state.recorder ?? "somebody else's";
// @ts-expect-error: null if the caller is not the recorder
export const wrong = (state: State): string => state.recorder;
export const code = (problem: Full): components["schemas"]["Problem"]["code"] => problem.code;
`);
});

test("@hey-api/openapi-ts: nothing is left out, and the client records a turn at a real server", async () => {
  const generate = join(GENERATORS, "node_modules/@hey-api/openapi-ts/bin/run.js");
  expect(run(process.execPath, [generate, "-i", DOCUMENT, "-o", "client"])).not.toContain("Skipping");
  writeFileSync(join(folder, "package.json"), "{}");
  compile(`
import { createRecording, getRecording, record, requestModel } from "./client";
import { client } from "./client/client.gen";
declare const process: { env: Record<string, string> };
client.setConfig({ baseUrl: process.env["URL"]!, auth: process.env["TOKEN"]! });
async function main(): Promise<void> {
  const created = await createRecording({ body: { dialect: "openai-chat", app: "generated" }, throwOnError: true });
  const { session: id, recorder } = created.data;
  const prompt = { role: "user", content: "count the stars" };
  const make = async (key: string, one: Parameters<typeof record>[0]["body"]["record"]): Promise<void> => {
    await record({ path: { id }, body: { recorder, key, record: one }, throwOnError: true });
  };
  await make("1", { type: "turn.start", prompt });
  const asked = await requestModel({ path: { id }, body: { recorder }, throwOnError: true });
  await make("2", { type: "messages", messages: { role: "assistant", content: "seven" }, end: true });
  const state = await getRecording({ path: { id }, throwOnError: true });
  const refused = await createRecording({ body: { dialect: "openai-chat", cwd: "" } });
  console.log(JSON.stringify({ id, asked: asked.data.messages, next: state.data.next, refused: refused.error?.code }));
}
void main();
`);
  await using stage = await ServerStage.start();
  const env = { ...process.env, URL: stage.server.url, TOKEN: stage.token };
  const child = spawn(process.execPath, ["built/program.js"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const printed = JSON.parse(await text(child.stdout)) as { id: string };
  expect(printed).toMatchObject({
    asked: [{ role: "user", content: "count the stars" }],
    next: "start",
    refused: "REQUEST_INVALID",
  });
  const { sessions } = await stage.client.call("listSessions", { query: {} });
  expect(sessions).toMatchObject([{ id: printed.id, app: "generated" }]);
});
