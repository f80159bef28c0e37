import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { fieldsOf, textIn } from "../../contract/shapes.ts";
import type {
  ModelPart,
  NewFile,
  SpokenPart,
  Transfer,
  TransferStep,
  WrittenSession,
} from "../../contract/transfer.ts";
import type { Door } from "../../files/door.ts";
import { lines, Making } from "../../transfer/making.ts";

const MARKER = ".project_root";
/** What Gemini CLI leaves out of a conversation that it resumes: it takes it for a command or for its own words. */
const IGNORED = /^\s*(?:[/?]|<session_context>|<hook_context>)/;

/** `tmp`: the folder of all projects. Each project is a folder in it, whose marker names the working folder. */
export function write(transfer: Transfer, tmp: string, door: Door): WrittenSession {
  const { id, cwd, at, title, steps } = transfer;
  const making = new Making(transfer);
  const startTime = making.nextTime();
  const projectHash = createHash("sha256").update(cwd).digest("hex");
  const records: object[] = [];
  let commands = 0;
  for (const step of steps) {
    const known = { id: making.uuid(), timestamp: making.nextTime() };
    if (step.kind === "user") {
      const [first, ...rest] = step.parts;
      const isIgnored = first?.type === "text" && IGNORED.test(first.text);
      if (isIgnored) commands++;
      const parts = isIgnored ? [{ ...first, text: `[holdfast] ${first.text}` }, ...rest] : step.parts;
      records.push({ ...known, type: "user", content: parts.map(partOf) });
    } else records.push({ ...known, ...answerOf(step.parts, known.timestamp, making) });
  }
  const header = { sessionId: id, projectHash, startTime, lastUpdated: making.nextTime(), kind: "main" };
  const summary = title === null ? {} : { summary: title };
  const project = projectFor(cwd, tmp, door);
  const name = `session-${new Date(at).toISOString().slice(0, 16).replaceAll(":", "-")}-${id.slice(0, 8)}.jsonl`;
  const marker: NewFile = { path: join(tmp, project.name, MARKER), name: null, text: cwd };
  const text = lines([{ ...header, ...summary }, ...records]);
  const files = [{ path: join(tmp, project.name, "chats", name), name, text }];
  const words =
    commands === 0
      ? []
      : [`${commands} prompts that Gemini CLI would take for commands: [holdfast] stands before them`];
  return {
    id,
    files: project.isNew ? [marker, ...files] : files,
    resume: [["gemini", "--resume", id]],
    leftOut: [...making.leftOut(), ...words],
  };
}

/** The folder of the project: the registry says it, or a marker; else a new one, named as Gemini CLI names them. */
function projectFor(cwd: string, tmp: string, door: Door): { readonly name: string; readonly isNew: boolean } {
  const registered = fieldsOf(fieldsOf(jsonIn(join(dirname(tmp), "projects.json"), door))["projects"]);
  const ownerOf = (name: string): string | null => textOfFile(join(tmp, name, MARKER), door)?.trim() ?? null;
  const own = textIn(registered[cwd]);
  if (own !== null && isName(own) && [null, cwd].includes(ownerOf(own)))
    return { name: own, isNew: ownerOf(own) === null };
  for (const { name, kind } of door.list(tmp))
    if (kind === "folder" && ownerOf(name) === cwd) return { name, isNew: false };
  const slug =
    basename(cwd)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "") || "project";
  const taken = new Set(Object.values(registered));
  for (let count = 0; ; count++) {
    const name = count === 0 ? slug : `${slug}-${count}`;
    if (!taken.has(name) && ownerOf(name) === null) return { name, isNew: true };
  }
}

const isName = (name: string): boolean => /^[\w-]+$/.test(name);
const TEXT_BYTES_MAX = 2 ** 22;

function textOfFile(path: string, door: Door): string | null {
  if (door.facts(path) === null) return null;
  using file = door.openRaw(path);
  return Buffer.from(file.read(0, Math.min(file.size, TEXT_BYTES_MAX))).toString("utf8");
}

function jsonIn(path: string, door: Door): unknown {
  try {
    return JSON.parse(textOfFile(path, door) ?? "{}");
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** An answer as Gemini CLI writes it: its text, its thoughts, and its calls with their results. */
function answerOf(parts: Extract<TransferStep, { kind: "model" }>["parts"], timestamp: string, making: Making): object {
  const textsOf = (type: "text" | "reasoning"): string[] =>
    parts.flatMap((part) => (part.type === type ? [part.text] : []));
  const toolCalls = parts.flatMap((part) => (part.type === "call" ? [callOf(part, timestamp, making)] : []));
  return {
    type: "gemini",
    content: textsOf("text").join("\n"),
    thoughts: textsOf("reasoning").map((description) => ({ subject: "", description, timestamp })),
    tokens: { input: 0, output: 0, cached: 0, thoughts: 0, tool: 0, total: 0 },
    model: "unknown",
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
  };
}

function callOf({ id, name, input, result }: Extract<ModelPart, { type: "call" }>, timestamp: string, making: Making) {
  const text = making.textOf(result.parts);
  const response = result.isError ? { error: text } : { output: text };
  return {
    ...{ id, name, args: input, result: [{ functionResponse: { id, name, response } }] },
    ...{ status: result.isError ? "error" : "success", timestamp, resultDisplay: text, description: "" },
    ...{ displayName: name, renderOutputAsMarkdown: false },
  };
}

const partOf = (part: SpokenPart): object =>
  part.type === "text" ? { text: part.text } : { inlineData: { mimeType: part.mediaType, data: part.data } };
