import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AGENTS,
  Door,
  diagnose,
  type ModelPart,
  type NewFile,
  type SpokenPart,
  sessionsHere,
  type Transfer,
  type TransferStep,
  type WrittenSession,
  writeNewFiles,
} from "@holdfast/doctor";
import { type AnthropicMessage, openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listRecordings, placeRecording } from "../../../../doctor/test/real/recording.ts";
import { importSession } from "../../../src/doctor/import.ts";
import { toTransfer } from "../../../src/doctor/transfer.ts";

/** Every recorded session of every agent, moved to every other one, and read there by the reader of that agent. */

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-moves-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const SOURCES = ["claude-code", "codex", "copilot", "gemini", "opencode", "pi", "dsh", "cline"];
const TARGETS = AGENTS.filter(({ write }) => write);
const AT = Date.parse("2026-11-20T10:00:00Z");

/** What was said and done, without reasoning: the same in every format. */
function spokenIn(steps: readonly TransferStep[]): string[] {
  return steps.flatMap(({ parts }, at) =>
    parts.flatMap((part): string[] => {
      if (part.type === "text") return [`${steps[at]!.kind}: ${part.text}`];
      if (part.type !== "call") return [];
      const { id, name, input, result } = part;
      const said = result.parts.map((each) => (each.type === "text" ? each.text : each.mediaType)).join("\n");
      return [`call ${id} ${name} ${JSON.stringify(input)}`, `result ${id} ${said.replace(/^Error: /, "")}`];
    }),
  );
}

/** The calls that failed, as far as the format says so. */
const failedIn = (steps: readonly TransferStep[]): string[] =>
  steps.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "call" && part.result.isError ? [part.id] : [])));

/** What the other agent writes beside a text, or joins: it counts that all of it is there, in order. */
function inOrder(text: string, pieces: readonly string[]): string[] {
  let at = 0;
  return pieces.filter((piece) => {
    const found = text.indexOf(piece, at);
    if (found >= 0) at = found;
    return found < 0;
  });
}

async function transferOf(home: string, story: string, to: string, cwd: string): Promise<Transfer[]> {
  using door = new Door();
  const transfers: Transfer[] = [];
  for (const found of sessionsHere(AGENTS, { environment: {}, home }, door)) {
    await using store = await openStore("memory:");
    const { id } = await importSession({ store, keepsFiles: false }, found, door);
    const options = { to, cwd, redact: false, at: AT };
    const { transfer } = toTransfer(await store.read(id), options);
    expect(transfer.steps.length, story).toBeGreaterThan(1);
    expect(toTransfer(await store.read(id), options).transfer.id).toBe(transfer.id);
    transfers.push(transfer);
  }
  return transfers;
}

const place = ({ files }: WrittenSession, home: string) =>
  files.map(({ path, name, text }: NewFile) => ({ path: path ?? join(home, name!), text, mayExist: name === null }));

describe.each(SOURCES)("sessions of %s", (from) => {
  const recordings = listRecordings(from);
  test.each(TARGETS)("go on in $title", async (target) => {
    expect(recordings.length).toBeGreaterThan(0);
    for (const recording of recordings) {
      const root = join(scratch, `${from}-${target.name}-${recording.version}-${recording.story}`);
      const source = placeRecording(recording, join(root, "source"));
      const home = join(root, "home");
      const cwd = join(root, "a folder of its own");
      mkdirSync(cwd, { recursive: true });
      using door = new Door();
      for (const transfer of await transferOf(source.home, recording.story, target.name, cwd)) {
        const written = target.write!(transfer, {}, home, door);
        const files = place(written, home);
        writeNewFiles(files);
        for (const { path } of files) expect(statSync(path).mode & 0o777).toBe(0o600);
        expect(() => writeNewFiles(files.slice(-1))).toThrow("there already");
        const pieces = spokenIn(transfer.steps);
        if (target.name === "opencode") {
          expect(inOrder(spokenIn(openCodeSteps(readFileSync(files.at(-1)!.path, "utf8"))).join("\n"), pieces)).toEqual(
            [],
          );
          continue;
        }
        const found = [...sessionsHere([target], { environment: {}, home }, door)].find(
          ({ session }) => session.id === written.id,
        )!;
        const { problems } = await diagnose(target, found.session, door);
        expect(problems).toEqual([]);
        await using store = await openStore("memory:");
        const { id } = await importSession({ store, keepsFiles: false }, found, door);
        const back = toTransfer(await store.read(id), { to: from, cwd, redact: false, at: AT }).transfer;
        const texts = (steps: readonly TransferStep[]): string[] => spokenIn(steps).map((each) => each.trim());
        // Gemini CLI and Copilot CLI keep one text for an answer: two in a row are joined there.
        expect(
          inOrder(
            texts(back.steps).join("\n"),
            texts(transfer.steps).flatMap((each) => each.split("\n")),
          ),
        ).toEqual([]);
        // Codex has no mark for it, only the word.
        if (target.name !== "codex") expect(failedIn(back.steps)).toEqual(failedIn(transfer.steps));
        const counts = (steps: readonly TransferStep[]) => Map.groupBy(spokenIn(steps), (each) => each.split(" ")[0]);
        for (const kind of ["call", "result"])
          expect(counts(back.steps).get(kind)?.length).toBe(counts(transfer.steps).get(kind)?.length);
      }
    }
  });
});

describe("what is odd in a conversation", () => {
  const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
  const MESSAGES: AnthropicMessage[] = [
    { role: "user", content: [{ type: "text", text: "/compact is what I typed" }, image] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Line\u2028separator, half \ud83d of a pair, \0 and “quotes”" },
        { type: "tool_use", id: `call:${"x".repeat(60)}`, name: "mcp.server/tool", input: { path: "a\nb" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: `call:${"x".repeat(60)}`,
          content: [{ type: "text", text: "<session_context>" }, image],
        },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "Done." }] },
    { role: "user", content: [{ type: "text", text: "<environment_context> is a word" }] },
  ];

  test.each(TARGETS)("goes on in $title, and is healthy there", async (target) => {
    const home = join(scratch, `odd-${target.name}`);
    await using store = await openStore("memory:");
    const session = await store.create({ dialect: "anthropic", cwd: scratch, title: 'A "title": of\n# two lines' });
    await session.sync(MESSAGES);
    await session.close();
    const { transfer } = toTransfer(await store.read(session.id), {
      to: target.name,
      cwd: undefined,
      redact: false,
      at: AT,
    });
    expect(transfer.steps.flatMap(({ parts }) => parts.filter(({ type }) => type === "call"))).toMatchObject([
      { id: expect.stringMatching(/^[\w-]{1,40}$/), name: "mcp_server_tool", input: { path: "a\nb" } },
    ]);
    using door = new Door();
    const written = target.write!(transfer, {}, home, door);
    writeNewFiles(place(written, home));
    const text = written.files.at(-1)!.text;
    expect(text.isWellFormed() && !text.includes("\\ud83d")).toBe(true);
    if (target.name !== "opencode") expect(text).not.toContain("\u2028");
    const lost = { "claude-code": 0, pi: 0, copilot: 2 }[target.name] ?? 1;
    expect(written.leftOut.filter((words) => words.includes("image"))).toEqual(
      lost === 0 ? [] : [`${lost} image${lost === 1 ? "" : "s"}: a note stands in its place`],
    );
    expect(text.includes("could not carry it over")).toBe(lost > 0);
    expect(text.includes(PNG)).toBe(lost < 2);
    if (target.name === "opencode") return;
    const [found] = [...sessionsHere([target], { environment: {}, home }, door)];
    expect((await diagnose(target, found!.session, door)).problems).toEqual([]);
    const { id } = await importSession({ store, keepsFiles: false }, found!, door);
    const back = toTransfer(await store.read(id), { to: "pi", cwd: undefined, redact: false, at: AT }).transfer;
    const said = JSON.stringify(back.steps);
    expect(said).toContain("/compact is what I typed");
    expect(said).toContain("<session_context>");
    expect(said).toContain("Done.");
  });
});

interface OpenCodePart {
  readonly type: string;
  readonly text?: string;
  readonly tool?: string;
  readonly callID?: string;
  readonly state?: { readonly input: Record<string, unknown>; readonly output?: string; readonly error?: string };
}

/** The steps of what `opencode import` takes. */
function openCodeSteps(text: string): TransferStep[] {
  const { messages } = JSON.parse(text) as {
    messages: { readonly info: { readonly role: string }; readonly parts: readonly OpenCodePart[] }[];
  };
  return messages.map(({ info, parts }): TransferStep => {
    const said = parts.flatMap((part): ModelPart[] => {
      if (part.type === "text") return [{ type: "text", text: part.text! }];
      if (part.type !== "tool") return [];
      const { input, output, error } = part.state!;
      const result = { parts: [{ type: "text", text: output ?? error! } as const], isError: error !== undefined };
      return [{ type: "call", id: part.callID!, name: part.tool!, input, result }];
    });
    return info.role === "user"
      ? { kind: "user", parts: said.filter(({ type }) => type === "text") as SpokenPart[] }
      : { kind: "model", parts: said };
  });
}
