import { join } from "node:path";
import type { LoadStore } from "../contract.ts";
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

export const loadLangGraph: LoadStore = async (load) => {
  const { StateGraph, MessagesAnnotation, START, END } = await load("@langchain/langgraph");
  const { SqliteSaver } = await load("@langchain/langgraph-checkpoint-sqlite");
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
    const saver = SqliteSaver.fromConnString(join(folder, "checkpoints.db"));
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
      close: async () => void saver.db.close(),
    };
  };
};
