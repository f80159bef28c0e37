import type { SaidShown, ServedHost } from "@holdfast/server/contract";
import { editOf } from "@holdfast/server/internal/edits";
import type { ModelMessage } from "ai";
import { commandsElsewhere } from "../evidence/facts-elsewhere.ts";
import { exported, formatFor } from "../export/index.ts";
import { redactDeep } from "../export/redact.ts";
import { describeInterruption, queueShown } from "../host/local/chat-state.ts";
import type { LocalHost } from "../host/local/local-host.ts";
import { accountElsewhere } from "../store/account.ts";
import { recoveryLines } from "../store/damage.ts";
import { itemsOf } from "../transcript/items.ts";
import { saidIn } from "../transcript/said.ts";
import { parsedJson, shapeOf } from "../transcript/shape.ts";

/** The agents of this process, as a server shows them. */
export function serveHost(host: LocalHost): ServedHost {
  return {
    get store() {
      return host.store;
    },
    get warnings() {
      return host.warnings;
    },
    sessions: host.sessions,
    list: (query) => host.list(query),
    search: (text) => host.search(text),
    peek: (id) => host.peek(id),
    prompts: (cwd, except) => host.prompts(cwd, except),
    create: (options) => host.create(options),
    open: (id, options) => host.open(id, options),
    latest: (cwd, options) => host.latest(cwd, options),
    unfinished: (cwd) => host.unfinished(cwd),
    fork: (id, options) => host.fork(id, options),
    close: () => host.close(),
    items: (reading) => itemsOf(reading),
    queue: ({ queue, attributes: { dialect } }) =>
      queueShown(queue.map((one) => ({ ...one, prompt: inOurs(one.prompt, dialect) }))),
    account: async (reading) => accountElsewhere(reading, await commandsElsewhere(host.sessions.url, reading)),
    interruption: (reading, account) => {
      const { interruption: found, attributes } = reading;
      if (!found) return null;
      const prompt = { ...found.prompt, message: inOurs(found.prompt.message, attributes.dialect) };
      return describeInterruption({ ...found, prompt }, account);
    },
    damageWords: recoveryLines,
    said,
    changeOf: ({ name, input }) => {
      const edit = editOf({ name, input });
      const path = pathIn(input);
      return edit && path !== null ? { path, rows: edit.rows } : null;
    },
    redact: redactDeep,
    exportAs: (id, format, redact) => exported(host.sessions, id, { format: formatFor(format, undefined), redact }),
    finishesAfterRestart: (id) => host.trustOf(id).finishes,
    handOver: (id, withinMs, hurry) => host.handOver(id, withinMs, hurry),
    handedOver: (id) => host.trustOf(id).handedOver,
    setFinishesAfterRestart: (id, finishes) => host.trustOf(id).setFinishes(finishes),
  };
}

function said(message: unknown, dialect: string): SaidShown {
  const { role, parts } = saidIn(message, dialect);
  return {
    role,
    text: parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
    calls: parts.flatMap((part) =>
      part.type === "call" && part.by !== "provider" ? [{ id: part.id, name: part.name, input: part.input }] : [],
    ),
    answers: parts.flatMap((part) => (part.type === "result" ? [{ call: part.call, failed: part.failed }] : [])),
  };
}

/** A prompt of another program, in the dialect of this agent. */
function inOurs(prompt: unknown, dialect: string): ModelMessage {
  if (dialect === "ai-sdk") return prompt as ModelMessage;
  return { role: "user", content: said(prompt, dialect).text };
}

/** What different agents call the path of a file. */
const PATHS = ["path", "file_path", "filePath", "file", "filename", "target_file"];

function pathIn(input: unknown): string | null {
  const shape = shapeOf(typeof input === "string" ? parsedJson(input) : input);
  const name = PATHS.find((one) => typeof shape?.[one] === "string");
  return name === undefined ? null : String(shape![name]);
}
