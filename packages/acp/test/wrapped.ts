import { join } from "node:path";
import { PassThrough } from "node:stream";
import { openStore, type Store } from "holdfast";
import { Library } from "../src/record/library.ts";
import type { Client, OpenedSession } from "../src/wrap/client.ts";
import { type WrapOptions, WrappedAgent } from "../src/wrap/wrapped-agent.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const AGENT = join(import.meta.dirname, "agents/raw-agent.ts");

export interface RawEditor {
  readonly wrapped: WrappedAgent;
  readonly library: Library;
  readonly store: Store;
  /** Everything that the editor was sent. */
  readonly seen: Any[];
  readonly logged: string[];
  readonly client: Client;
  /** What goes with the lines that it was sent, for a shim. */
  readonly changes: Any[];
  /** That agents were started, and what was opened. */
  readonly hooked: Any[];
  /** Another editor, in place of this one. */
  next(): RawEditor;
  send(message: object): void;
  /** Bytes as they are. */
  write(bytes: string | Buffer): void;
  /** Resolves with the answer. */
  ask(method: string, params?: object): Promise<Any>;
  /** The first line that it was sent, or will be, for which this holds. */
  until(isIt: (message: Any) => boolean): Promise<Any>;
  /** Closes its side. Resolves when everything that it said was read. */
  leave(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An editor that speaks in lines, and the wrapped raw agent. */
export async function rawEditor(
  behaviour: object,
  {
    initialize = true,
    /** The test starts the agent itself. */
    isStarted = true,
    store = undefined as Store | undefined,
    library = undefined as Library | undefined,
    continues = undefined as readonly OpenedSession[] | undefined,
    finishing = undefined as WrapOptions["finishing"],
  } = {},
): Promise<RawEditor> {
  const command = [process.execPath, AGENT, JSON.stringify(behaviour)];
  const opened = store ?? (await openStore("memory:"));
  const sessions = library ?? new Library(opened, command);
  const logged: string[] = [];
  const hooked: Any[] = [];
  const wrapped = new WrappedAgent({
    ...{ command, library: sessions, log: (line) => void logged.push(line) },
    ...(finishing ? { finishing } : {}),
    onStarted: () => void hooked.push("started"),
    onOpened: async (...args) => void hooked.push(args),
  });
  if (continues) wrapped.continueFrom({ protocolVersion: 1 }, continues);
  else if (isStarted) await wrapped.start();
  const editor = editorOf({ wrapped, library: sessions, store: opened, logged, hooked }, async () => {
    await wrapped.end();
    if (!store) await opened.close();
  });
  if (initialize && !continues) await editor.ask("initialize", { protocolVersion: 1 });
  return editor;
}

type Shared = Pick<RawEditor, "wrapped" | "library" | "store" | "logged" | "hooked">;

function editorOf(shared: Shared, onDispose: () => Promise<void>): RawEditor {
  const { wrapped } = shared;
  const seen: Any[] = [];
  const changes: Any[] = [];
  let wake: (() => void)[] = [];
  const client = wrapped.attach({
    write: async (bytes, answers, change) => {
      if (answers !== undefined) changes.push({ answers });
      if (change) changes.push(change);
      for (const line of bytes.toString("utf8").split("\n")) if (line.trim() !== "") seen.push(messageIn(line));
      const waiting = wake;
      wake = [];
      for (const one of waiting) one();
    },
  });
  const input = new PassThrough();
  const read = wrapped.read(client, input);
  read.catch(() => undefined);
  let serial = 0;
  const until = async (isIt: (message: Any) => boolean): Promise<Any> => {
    for (;;) {
      const found = seen.find(isIt);
      if (found) return found;
      await new Promise<void>((resolve) => wake.push(resolve));
    }
  };
  const send = (message: object): void => void input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  return {
    ...{ ...shared, client, seen, changes, send, until },
    write: (bytes) => void input.write(bytes),
    ask: (method, params = {}) => {
      const id = `e${++serial}`;
      send({ id, method, params });
      return until((message) => message.id === id && message.method === undefined);
    },
    leave: () => {
      input.end();
      return read;
    },
    next: () => editorOf(shared, async () => undefined),
    [Symbol.asyncDispose]: async () => {
      input.end();
      await wrapped.detach(client);
      await onDispose();
    },
  };
}

function messageIn(line: string): Any {
  try {
    return JSON.parse(line);
  } catch {
    return { line };
  }
}

/** What the editor was told of this session, as words. */
export function said(seen: readonly Any[]): string[] {
  return seen
    .filter(({ method }) => method === "session/update")
    .map(({ params: { update } }) => update.content?.text ?? update.sessionUpdate);
}

export const blocks = (...steps: string[]) => steps.map((text) => ({ type: "text", text }));
