import type { RunnableConfig } from "@langchain/core/runnables";

export function threadIdIn({ configurable }: RunnableConfig): string | undefined {
  const id: unknown = configurable?.["thread_id"];
  return id === undefined || id === null || id === "" ? undefined : String(id);
}

export function requiredThread(config: RunnableConfig): string {
  const id = threadIdIn(config);
  if (id !== undefined) return id;
  throw new Error(
    'Nothing was saved: "configurable" has no "thread_id". Pass one: graph.invoke(input, { configurable: { thread_id: "1" } }).',
  );
}

/** Undefined stands for all namespaces, if checkpoints are listed, and otherwise for the graph's own. */
export function namespaceIn({ configurable }: RunnableConfig): string | undefined {
  const ns: unknown = configurable?.["checkpoint_ns"];
  return ns === undefined || ns === null ? undefined : String(ns);
}

export function configOf(threadId: string, ns: string, id: string): RunnableConfig {
  return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } };
}
