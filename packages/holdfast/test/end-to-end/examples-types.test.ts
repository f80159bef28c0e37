import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { place } from "../place.ts";

/** The programs in examples/ and every block of code in the guides compile, as strictly as the library itself. */

const ROOT = resolve(import.meta.dirname, "../../../..");

/** What the blocks of the guides take for granted: the agent of the reader. */
const AGENT = `
import { setTimeout as sleep } from "node:timers/promises";
import type { Probe, Session, Store, Turn } from "holdfast";
interface Message { readonly role: "user" | "assistant"; readonly content: unknown }
interface Call { readonly id: string; readonly name: string; readonly input: unknown }
declare const store: Store;
declare const session: Session<Message>;
declare const turn: Turn<Message>;
declare const prompt: Message;
declare const summary: Message;
declare const messages: Message[];
declare const call: Call;
declare const userSaysGoOn: boolean;
declare const words: Record<string, string>;
declare function model(messages: readonly Message[], onText: (text: string) => void, signal: AbortSignal): Promise<Message>;
declare function stream(messages: Message[]): Promise<void>;
declare function send(messages: readonly Message[]): Promise<{ readonly id: string }>;
declare function fetched(handle: unknown): Promise<Message | null>;
declare function callsIn(message: Message): Call[];
declare function run(call: Call, signal: AbortSignal): Promise<string>;
declare function chargeOf(key: string | null): Promise<{ value: string } | null>;
interface Invoice { readonly order: string }
interface Charge { readonly receipt: string }
declare const invoice: Invoice;
declare function pay(invoice: unknown, key: string, signal: AbortSignal): Promise<Charge>;
declare function find(question: string, signal: AbortSignal): Promise<Charge | null>;
declare const probe: Probe<Charge>;
declare const mailProbe: Probe;
declare const REQUEST_MS: number;
declare function resultOf(call: Call, outcome: unknown): Message;
const found = session.interruption;
`;

function blocks(): string[] {
  const guides = ["adopt-in-an-hour", "background-responses", "payments"];
  const text = guides.map((name) => readFileSync(join(ROOT, `docs/guides/${name}.md`), "utf8")).join("\n");
  return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
}

test("the examples and the blocks of the guides compile", () => {
  using here = place();
  const found = blocks();
  expect(found.length).toBeGreaterThan(7);
  for (const [n, code] of found.entries()) {
    const imports = code.match(/^import .*$/gm) ?? [];
    const body = code.replaceAll(/^import .*$/gm, "");
    const program = `${imports.join("\n")}\n${AGENT}\nvoid [store, turn, prompt, summary, messages, call, userSaysGoOn, words, found, sleep, invoice, probe, mailProbe, REQUEST_MS];\nexport async function block(): Promise<void> {\n${body}\n}\n`;
    writeFileSync(join(here.path, `block-${n}.ts`), program);
  }
  mkdirSync(join(here.path, "node_modules"));
  for (const name of ["holdfast", "@types"])
    symlinkSync(join(ROOT, "node_modules", name), join(here.path, "node_modules", name));
  const config = {
    extends: join(ROOT, "tsconfig.test.json"),
    compilerOptions: { noUnusedLocals: false, preserveSymlinks: false, typeRoots: [join(ROOT, "node_modules/@types")] },
    // The last one says what examples/cloudflare.ts uses of a Worker.
    include: [
      here.path,
      join(ROOT, "examples"),
      join(ROOT, "packages/cloudflare/test/workers/cloudflare-workers.d.ts"),
    ],
  };
  writeFileSync(join(here.path, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(here.path, "package.json"), '{ "type": "module" }');
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  let said = "";
  try {
    execFileSync(process.execPath, [tsc, "-p", here.path], { cwd: ROOT, encoding: "utf8" });
  } catch (error) {
    said = String((error as { stdout?: unknown }).stdout ?? error);
  }
  expect(said).toBe("");
});
