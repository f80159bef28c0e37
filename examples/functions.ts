// An agent in functions that the platform ends after a minute. One function takes prompts; another one works until
// shortly before its limit, hands over what it is at, and has itself called again (docs/guides/functions.md).
//   export DATABASE_URL=postgres://worker@db.internal/agents WAKE_URL=https://queue.example.com/work
//   node --conditions=holdfast-source examples/functions.ts
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "@holdfast/postgres";
import { serve } from "@hono/node-server";
import { idFrom, isHoldfastError, type OpenCall, type Session, type Turn } from "holdfast";
import { Hono } from "hono";
import { ask, callsIn, type Message } from "./model.ts";

/** How long an invocation may take: the platform's limit. */
const LIMIT_MS = Number(process.env["LIMIT_MS"] ?? 60_000);
/** At the end, for the tools that run and the answer that streams. */
const WITHIN_MS = LIMIT_MS / 4;
/** After that, for the message to the queue and what the platform does itself. */
const SPARE_MS = LIMIT_MS / 12;

const OURS = { app: "functions" };
const store = await openStore(process.env["DATABASE_URL"] ?? "postgres://localhost/agents", {
  ...OURS,
  recordsToolStarts: true, // promise: every tool runs through `turn.tool` or `store.tool`
});

const app = new Hono();

/** A prompt. It is durable when the answer comes; the client repeats the request, with the same key, until it does. */
app.post("/chats/:chat", async (context) => {
  const { text, key } = await context.req.json<{ readonly text: string; readonly key: string }>();
  try {
    const session = await opened(context.req.param("chat"));
    await session.startTurn({ role: "user", content: text }, { key });
    // Nothing is under way: the turn is the next invocation's.
    await session.close({ handOver: true });
  } catch (error) {
    if (isHoldfastError(error, "SESSION_BUSY")) return context.text("working on the last prompt", 409);
    // Repeated: its turn is over.
    if (!isHoldfastError(error, "PROMPT_KNOWN")) throw error;
  }
  await wake(new Date());
  return context.body(null, 202);
});

app.get("/chats/:chat", async (context) => {
  const { messages, state } = await store.read<Message>(idOf(context.req.param("chat")));
  return context.json({ messages, state });
});

/** The queue calls it, and a cron job each minute, in case a message was lost. Any number of them may run at once. */
app.post("/work", async (context) => {
  const signal = AbortSignal.timeout(LIMIT_MS - WITHIN_MS - SPARE_MS);
  while (await store.claimNext<Message>({ ...OURS, signal, withinMs: WITHIN_MS }, finish));
  const due = await store.nextDue(OURS);
  if (due) await wake(due);
  return context.json({ due });
});

const { port } = await new Promise<AddressInfo>((resolve) => {
  serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000) }, resolve);
});
console.log(`http://localhost:${port}`);

/** Has `/work` called at that time: by a queue of your platform that delays messages. */
async function wake(at: Date): Promise<void> {
  const url = process.env["WAKE_URL"];
  if (url) await fetch(url, { method: "POST", body: at.toISOString() });
}

function idOf(chat: string): string {
  return idFrom(`chat ${chat}`);
}

async function opened(chat: string): Promise<Session<Message>> {
  const id = idOf(chat);
  try {
    return await store.create<Message>({ dialect: "anthropic", id });
  } catch (error) {
    if (!isHoldfastError(error, "SESSION_EXISTS")) throw error;
    return store.resume<Message>(id, { dialect: "anthropic" });
  }
}

async function finish(session: Session<Message>): Promise<void> {
  // The model had answered, and only the end of the turn is missing: do not ask again.
  if (session.interruption?.answered) return session.completeTurn();
  // Calls that never started or are safe to repeat stay open. For the others, the model is told how far each got.
  const turn = await session.resumeTurn({ calls: "rerun" });
  for (;;) {
    for (const call of turn.open) await run(turn, call);
    const { messages, draft } = turn.request();
    const answer = await ask(messages, (text) => draft.push({ text }), turn.signal);
    const isLast = callsIn(answer).length === 0;
    await draft.commit(answer, { end: isLast });
    if (isLast) return;
  }
}

async function run(turn: Turn<Message>, { id, name }: OpenCall): Promise<void> {
  switch (name) {
    case "post_summary":
      // The row and the outcome are committed together: whatever ends the function, it is posted exactly once.
      await store.tool(turn, id, async (client) => {
        await client.query("INSERT INTO summaries (call) VALUES ($1)", [id]);
        return "Posted.";
      });
      return;
    case "send_mail":
      // Nobody can send a mail exactly once. If the function ends in here, the model is told that it may have been
      // sent.
      await turn.tool(id, async () => {
        await fetch(process.env["MAIL_URL"] ?? "http://localhost:2525", { method: "POST", body: id });
        await sleep(200);
        return "Sent.";
      });
      return;
    default:
      await turn.tool(id, () => "Release on Friday.", { replay: "safe" });
  }
}
