import { setImmediate } from "node:timers/promises";
import type { Chat, ChatEvent, ChatState, EditorOffer, Host } from "@holdfast/server/contract";
import type { CallWords } from "../src/agent/words.ts";
import { type AgentOptions, serveAgent } from "../src/index.ts";
import { pipe } from "./in-memory.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

export const AT = "2026-11-17T00:00:00.000Z";
export const FOLDER = { cwd: "/work", mcpServers: [] };

/** A chat that does what the test says. `did` has what was asked of it. */
export interface ScriptedChat {
  readonly chat: Chat;
  readonly did: string[];
  /** Changes what `state` shows. */
  set(change: Partial<Record<keyof ChatState, unknown>>): void;
  emit(event: Any): void;
  readonly listeners: () => number;
  /** What `prompt`, `stop` and the others do. */
  on: Record<string, (...args: Any[]) => unknown>;
}

export function scriptedChat(id: string, change: Partial<Record<keyof ChatState, unknown>> = {}): ScriptedChat {
  const listeners = new Set<(event: ChatEvent) => void>();
  const did: string[] = [];
  let state: Any = {
    ...{ id, title: "t", mode: "ask", model: "offline/one", cwd: "/work", status: "idle", canUndo: false },
    ...{ items: [], interruption: null, asks: [], queue: [], damage: [], outputs: {} },
    account: { can: { finish: { no: "nothing-to-finish", words: "Nothing to finish: the last turn completed." } } },
    ...{ window: { usedTokens: 3, maxTokens: 9 }, usage: {}, ...change },
  };
  const on: ScriptedChat["on"] = {};
  const does =
    (name: string) =>
    async (...args: unknown[]): Promise<unknown> => {
      did.push([name, ...args.map((one) => (typeof one === "string" ? one : JSON.stringify(one)))].join(" "));
      return on[name]?.(...args);
    };
  const names = "prompt finish stop resumeQueue answer setModel compact clear undo rename close".split(" ");
  const chat = {
    id,
    get state() {
      return state;
    },
    subscribe: (listener: (event: ChatEvent) => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    settled: async () => on["settled"]?.(),
    setMode: (mode: string) => void did.push(`setMode ${mode}`),
    ...Object.fromEntries(names.map((name) => [name, does(name)])),
  };
  return {
    ...{ chat: chat as unknown as Chat, did, on, listeners: () => listeners.size },
    set: (more) => {
      state = { ...state, ...more };
    },
    emit: (event) => {
      for (const listener of [...listeners]) listener(event);
    },
  };
}

/** Says of a call what its input says: `{ plan, change, path }`. */
export const words: CallWords = {
  title: ({ name }) => `does ${name}`,
  kind: () => "other",
  path: ({ input }) => (input as Any)?.path ?? null,
  change: ({ input }) => (input as Any)?.change ?? null,
  plan: ({ input }) => (input as Any)?.plan ?? null,
  planInSummary: () => null,
};

export interface Served {
  /** Everything that the editor was sent. */
  readonly sent: Any[];
  readonly logged: string[];
  readonly offers: [string, EditorOffer][];
  readonly did: string[];
  /** Resolves with the answer, a result or an error. */
  ask(method: string, params?: object): Promise<Any>;
  tell(method: string, params: object): void;
  /** Resolves with the updates since the last call, when everything that the agent has to send is sent. */
  shown(scripted: ScriptedChat): Promise<Any[]>;
}

/** The agent over a host that the test makes, and an editor. `answer`: what the editor answers to the agent. */
export async function served(
  host: Partial<Record<keyof Host, (...args: Any[]) => unknown>>,
  {
    capabilities = {},
    answer = (_method: string, _params: Any): unknown => new Promise(() => undefined),
    isLocal = true,
    ...options
  }: {
    readonly capabilities?: object;
    readonly answer?: (method: string, params: Any) => unknown;
    readonly isLocal?: boolean;
  } & Partial<AgentOptions> = {},
): Promise<Served> {
  const ends = pipe(true);
  const logged: string[] = [];
  const offers: [string, EditorOffer][] = [];
  const did: string[] = [];
  const accept = async (session: string, offer: EditorOffer): Promise<void> => void offers.push([session, offer]);
  const drop = async (session: string): Promise<void> => void did.push(`drop ${session}`);
  const remove = async (session: string): Promise<void> => void did.push(`remove ${session}`);
  serveAgent(
    {
      ...{ host: host as unknown as Host, version: "7", words, models: ["offline/one", "offline/two"] },
      ...{ editor: isLocal ? { accept, drop } : null, remove, log: (line) => void logged.push(line), ...options },
    },
    ends.agent as never,
  );
  const writer = ends.client.writable.getWriter();
  const waiting = new Map<unknown, (message: Any) => void>();
  const read = async (): Promise<void> => {
    for await (const message of ends.client.readable as unknown as AsyncIterable<Any>) {
      if (message.method === undefined) waiting.get(message.id)?.(message);
      else if (message.id !== undefined)
        void Promise.resolve()
          .then(() => answer(message.method, message.params))
          .then(
            (result) => ({ result }),
            (error: Error) => ({ error: { code: -32603, message: error.message } }),
          )
          .then((given) => writer.write({ jsonrpc: "2.0", id: message.id, ...given }));
    }
  };
  void read();
  let serial = 0;
  const ask = (method: string, params: object = {}): Promise<Any> => {
    const id = ++serial;
    void writer.write({ jsonrpc: "2.0", id, method, params });
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  await ask("initialize", { protocolVersion: 1, clientCapabilities: capabilities });
  let marks = 0;
  let from = 0;
  return {
    ...{ sent: ends.sent, logged, offers, did, ask },
    tell: (method, params) => void writer.write({ jsonrpc: "2.0", method, params }),
    shown: async ({ emit }) => {
      const mark = `mark ${++marks}`;
      const isMark = ({ params }: Any) => (params?.update?.content?.text ?? params?.update?.title) === mark;
      emit({ type: "notice", level: "info", text: mark });
      for (let turns = 0; !ends.sent.some(isMark); turns++) {
        if (turns > 10_000) throw new Error("it never came");
        await setImmediate();
      }
      const news = ends.sent.slice(from);
      from = ends.sent.length;
      return news.flatMap((one) => (one.method === "session/update" && !isMark(one) ? [one.params.update] : []));
    },
  };
}
