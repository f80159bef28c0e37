import { join } from "node:path";
import type { Load, LoadStore, OpenStore } from "../contract.ts";
import { type Piece, TOOL, type TurnText } from "../turns.ts";

type Update = { readonly messages: readonly unknown[] };
interface Config {
  readonly configurable: { readonly thread_id: string };
}
interface Graph {
  invoke(input: Update, config: Config): Promise<unknown>;
  updateState(config: Config, update: Update, asNode: string): Promise<unknown>;
  getState(config: Config): Promise<{ readonly values: Update }>;
}
type NewMessage = new (fields: object) => unknown;

/** A saver of checkpoints, and what closes it. */
interface OpenSaver {
  readonly saver: unknown;
  readonly close: () => Promise<void>;
  readonly list?: () => Promise<number>;
}

export const loadLangGraph: LoadStore = async (load) => {
  const { SqliteSaver } = await load("@langchain/langgraph-checkpoint-sqlite");
  return graphOn(load, async (folder) => {
    const saver = SqliteSaver.fromConnString(join(folder, "checkpoints.db"));
    return { saver, close: async () => void saver.db.close() };
  });
};

/** The same graph, with the versions of LangGraph that this repository is tested with. */
export const loadHoldfastSaver: LoadStore = async () => {
  const { HoldfastSaver } = await import("@holdfast/adapters/langgraph");
  return graphOn(
    (name) => import(name),
    async (folder) => {
      const saver = await HoldfastSaver.open(folder, { durability: "process" });
      return {
        saver,
        close: () => saver.close(),
        list: async () => {
          let count = 0;
          let after: string | undefined;
          do {
            const { threads, next } = await saver.listThreads({
              limit: 1000,
              ...(after === undefined ? {} : { after }),
            });
            count += threads.length;
            after = next;
          } while (after !== undefined);
          return count;
        },
      };
    },
  );
};

async function graphOn(load: Load, open: (folder: string) => Promise<OpenSaver>): Promise<OpenStore> {
  const { StateGraph, MessagesAnnotation, START, END } = await load("@langchain/langgraph");
  const messages = (await load("@langchain/core/messages")) as Record<string, NewMessage>;
  const formOf = (turn: TurnText, piece: Piece, i: number): unknown => {
    const id = `${turn.index}-${i}`;
    const content = piece.text;
    if (piece.kind === "prompt") return new messages["HumanMessage"]!({ id, content });
    if (piece.kind === "result")
      return new messages["ToolMessage"]!({ id, content, tool_call_id: piece.id, name: TOOL });
    const calls = piece.kind === "call" ? [{ id: piece.id, name: TOOL, args: piece.input }] : [];
    return new messages["AIMessage"]!({ id, content, tool_calls: calls });
  };
  const formsOf = (turn: TurnText): unknown[] => turn.pieces.map((piece, i) => formOf(turn, piece, i));
  return async (folder) => {
    const { saver, close, list } = await open(folder);
    // What a model and its tools would say next.
    let coming: unknown[] = [];
    const next = (): Update => ({ messages: [coming.shift()] });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("model", next)
      .addNode("tools", next)
      .addEdge(START, "model")
      .addConditionalEdges("model", () => (coming.length === 0 ? END : "tools"))
      .addEdge("tools", "model")
      .compile({ checkpointer: saver }) as Graph;
    const configOf = (id: string): Config => ({ configurable: { thread_id: id } });
    return {
      create: async () => {
        const id = crypto.randomUUID();
        return {
          id,
          prepare: (turn) => {
            const [prompt, ...rest] = formsOf(turn);
            return async () => {
              coming = rest;
              await graph.invoke({ messages: [prompt] }, configOf(id));
            };
          },
          grow: async (turns) => {
            await graph.updateState(configOf(id), { messages: turns.flatMap(formsOf) }, "model");
          },
          close: async () => {},
        };
      },
      fill: async (turns) => {
        const id = crypto.randomUUID();
        await graph.updateState(configOf(id), { messages: Array.from(turns, formsOf).flat() }, "model");
        return id;
      },
      resume: async (id) => {
        const { values } = await graph.getState(configOf(id));
        return { messages: values.messages.length, kept: values };
      },
      ...(list ? { list } : {}),
      close,
    };
  };
}
