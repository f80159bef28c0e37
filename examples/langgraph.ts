// A graph of LangGraph with HoldfastSaver: a thread goes on after the last step that was saved.
// Start it, `kill -9` it in the middle, and start it again: node --conditions=holdfast-source examples/langgraph.ts
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastSaver } from "@holdfast/adapters/langgraph";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const checkpointer = await HoldfastSaver.open("./agent-data");

const graph = new StateGraph(MessagesAnnotation)
  .addNode("read_notes", () => step("read_notes", "I have read the notes."))
  .addNode("send_mail", async () => {
    console.log(`  the mail is on its way (kill -9 ${process.pid} now, and start me again)`);
    if (!process.argv.includes("--fast")) await sleep(10_000);
    return step("send_mail", "The mail is sent.");
  })
  .addNode("post_summary", () => step("post_summary", "The summary is posted."))
  .addEdge(START, "read_notes")
  .addEdge("read_notes", "send_mail")
  .addEdge("send_mail", "post_summary")
  .addEdge("post_summary", END)
  .compile({ checkpointer });

function step(name: string, text: string): { messages: AIMessage[] } {
  console.log(`node: ${name}`);
  return { messages: [new AIMessage(text)] };
}

// A step is on disk before the next one begins.
const config = { configurable: { thread_id: "release" }, durability: "sync" as const };
const before = await graph.getState(config);
const isInterrupted = before.tasks.length > 0;
if (isInterrupted) console.log(`the thread was cut off before: ${before.next.join(", ")}`);
// Without input, a graph goes on where it was.
const input = isInterrupted ? null : { messages: [new HumanMessage("Tell everybody about the release.")] };
const { messages } = await graph.invoke(input, config);
for (const message of messages) console.log(`${message.getType()}: ${message.text}`);
await checkpointer.close();
