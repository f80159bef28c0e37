// An agent in a Durable Object: one object is one conversation. Deploys, evictions and crashes end an object without a
// word. An alarm that is set before the prompt is recorded starts the next one, which finishes the turn.
// docs/guides/cloudflare.md explains it.
import { DurableObject } from "cloudflare:workers";
import { openStore } from "@holdfast/cloudflare";
import { isHoldfastError, type OpenCall, type Session, type Turn } from "holdfast";
import { ask, callsIn, type Message } from "./model.ts";

/** How soon a dead object's turn goes on. */
const WAKE_MS = 10_000;

export class Agent extends DurableObject {
  #session!: Session<Message>;
  #isWorking = false;

  constructor(...given: ConstructorParameters<typeof DurableObject>) {
    super(...given);
    // Requests and alarms wait for it. If it throws, Cloudflare starts the object again.
    void this.ctx.blockConcurrencyWhile(async () => {
      // promise: every tool runs through `turn.tool`
      const store = await openStore(this.ctx, { recordsToolStarts: true });
      this.#session =
        (await store.resumeLatest<Message>({}, { dialect: "anthropic" })) ??
        (await store.create<Message>({ dialect: "anthropic" }));
    });
  }

  /** POST: a prompt, with a key by which the client can repeat it. GET: the conversation. */
  override async fetch(request: Request): Promise<Response> {
    if (request.method === "POST") {
      const { prompt, key } = (await request.json()) as { readonly prompt: string; readonly key: string };
      if (this.#isWorking) return new Response("working on a prompt", { status: 409 });
      try {
        await this.#work(() => this.#session.startTurn({ role: "user", content: prompt }, { key }));
      } catch (error) {
        // A repeated prompt, whose turn is over: its answer is in the conversation.
        if (!isHoldfastError(error, "PROMPT_KNOWN")) throw error;
      }
    }
    return Response.json({ messages: this.#session.messages, interruption: this.#session.interruption });
  }

  override async alarm(): Promise<void> {
    // This object works on it. The next alarm looks again.
    if (this.#isWorking) return this.ctx.storage.setAlarm(Date.now() + WAKE_MS);
    const found = this.#session.interruption;
    // A turn that failed, or that was stopped, waits for a person.
    if (found?.how.kind !== "killed") return;
    // The model had answered, and only the end of the turn is missing: do not ask again.
    if (found.answered) return this.#session.completeTurn();
    // Calls that never started or are safe to repeat stay open. For the others, the model is told how far each got.
    await this.#work(() => this.#session.resumeTurn({ calls: "rerun" }));
  }

  /** If the object ends in the middle, an alarm starts the next one. One at a time. */
  async #work(begin: () => Promise<Turn<Message>>): Promise<void> {
    this.#isWorking = true;
    try {
      await this.ctx.storage.setAlarm(Date.now() + WAKE_MS);
      await finish(await begin());
      await this.ctx.storage.deleteAlarm();
    } finally {
      this.#isWorking = false;
    }
  }
}

async function finish(turn: Turn<Message>): Promise<void> {
  try {
    for (;;) {
      for (const call of turn.open) await run(turn, call);
      const { messages, draft } = turn.request();
      const answer = await ask(messages, (text) => draft.push({ text }), turn.signal);
      const isLast = callsIn(answer).length === 0;
      await draft.commit(answer, { end: isLast });
      if (isLast) return;
    }
  } catch (error) {
    await turn.fail(error);
    throw error;
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
