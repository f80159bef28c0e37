// An agent in a Durable Object: one object is one conversation. Deploys, evictions and crashes end an object without a
// word. An alarm that is set before the prompt is recorded starts the next one, which finishes the turn.
// docs/guides/cloudflare.md explains it.
import { DurableObject } from "cloudflare:workers";
import { openStore } from "@holdfast/cloudflare";
import { isHoldfastError, type OpenCall, type Session, type Store, type Turn } from "holdfast";
import { ask, callsIn, type Message } from "./model.ts";

/** How soon a dead object's turn goes on. */
const WAKE_MS = 10_000;

export class Agent extends DurableObject {
  #store!: Store;
  #id!: string;
  #isWorking = false;

  constructor(...given: ConstructorParameters<typeof DurableObject>) {
    super(...given);
    // Requests and alarms wait for it. If it throws, Cloudflare starts the object again.
    void this.ctx.blockConcurrencyWhile(async () => {
      // promise: every tool runs through `turn.tool`
      this.#store = await openStore(this.ctx, { recordsToolStarts: true });
      const session =
        (await this.#store.resumeLatest<Message>({}, { dialect: "anthropic" })) ??
        (await this.#store.create<Message>({ dialect: "anthropic" }));
      this.#id = session.id;
      // It is opened when there is work for it.
      await session.close();
    });
  }

  /** POST: a prompt, with a key by which the client can repeat it. GET: the conversation. */
  override async fetch(request: Request): Promise<Response> {
    if (request.method === "POST") {
      const { prompt, key } = (await request.json()) as { readonly prompt: string; readonly key: string };
      if (this.#isWorking) return new Response("working on a prompt", { status: 409 });
      await this.#work(() => this.#start(prompt, key));
    }
    const { messages, interruption } = await this.#store.read<Message>(this.#id);
    return Response.json({ messages, interruption });
  }

  override async alarm(): Promise<void> {
    // This object works on it. The next alarm looks again.
    if (this.#isWorking) return this.ctx.storage.setAlarm(Date.now() + WAKE_MS);
    await this.#work();
  }

  /** If the object ends in the middle, an alarm starts the next one. One at a time. */
  async #work(begin?: () => Promise<void>): Promise<void> {
    this.#isWorking = true;
    try {
      await this.ctx.storage.setAlarm(Date.now() + WAKE_MS);
      await begin?.();
      while (await this.#store.claimNext<Message>({}, finish));
      const due = await this.#store.nextDue();
      if (due) await this.ctx.storage.setAlarm(due.getTime());
      else await this.ctx.storage.deleteAlarm();
    } finally {
      this.#isWorking = false;
    }
  }

  async #start(prompt: string, key: string): Promise<void> {
    const session = await this.#store.resume<Message>(this.#id, { dialect: "anthropic" });
    try {
      await session.startTurn({ role: "user", content: prompt }, { key });
    } catch (error) {
      // A repeated prompt, whose turn is over: its answer is in the conversation.
      if (!isHoldfastError(error, "PROMPT_KNOWN")) throw error;
    } finally {
      // Nothing is running: the next worker claims the turn.
      await session.close({ handOver: true });
    }
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
  // Nobody can send a mail exactly once. After a crash in here, the model is told that it may have been sent.
  if (name === "send_mail") await turn.tool(id, () => "Sent.");
  else await turn.tool(id, () => "Release on Friday.", { replay: "safe" });
}

export default {
  /** `/<conversation>` */
  fetch(request: Request, { AGENTS }: { readonly AGENTS: Agents }): Promise<Response> {
    return AGENTS.getByName(new URL(request.url).pathname).fetch(request);
  },
};

interface Agents {
  getByName(name: string): { fetch(request: Request): Promise<Response> };
}
