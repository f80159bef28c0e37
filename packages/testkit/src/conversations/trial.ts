import { join } from "node:path";
import { isHoldfastError, type Store } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { effectsIn } from "./effects.ts";
import type { AgentEvent } from "./events.ts";
import type { AgentJob, Flaw } from "./job.ts";
import { type AgentProgram, liveAgent } from "./life.ts";
import { Log } from "./log.ts";
import { type ConversationFault, judgeConversation } from "./oracle.ts";
import type { ConversationPlan, Ending } from "./plan.ts";
import { shownBy } from "./stage.ts";
import { type Message, voiceOf } from "./voices.ts";

const TURNS = 6;
/** The refusals the library may give, and to which calls. */
const REFUSALS: Partial<Record<string, readonly string[]>> = {
  replace: ["STEP_SPLIT", "CALLS_OPEN"],
  undo: ["UNDO_TOO_LATE"],
  edit: ["STEP_SPLIT", "MESSAGE_UNFIT", "MESSAGE_UNKNOWN"],
  // The user stopped the turn while it was under way.
  toolStarted: ["TURN_ENDED"],
};

export interface TrialPlace {
  /** An address for `openStore`. */
  readonly address: string;
  /** Looks at that store while no agent lives. */
  look(work: (store: Store, journals: JournalStore) => Promise<void>): Promise<void>;
  /** Where effects are written. */
  readonly folder: string;
  readonly durability: AgentJob["durability"];
}

/** One conversation whose agent is killed repeatedly, and checked after each death. */
export class ConversationTrial {
  readonly log = new Log();
  readonly faults: ConversationFault[] = [];
  kills = 0;
  readonly #place: TrialPlace;
  readonly #agent: AgentProgram;
  readonly #plan: ConversationPlan;
  readonly #flaw: Flaw | undefined;
  readonly #effects: string;
  #session: string | null = null;
  /** What a reader saw after the last death: the next agent must find the same. */
  #shown: string | null = null;

  constructor(place: TrialPlace, agent: AgentProgram, plan: ConversationPlan, name: string, flaw?: Flaw) {
    this.#place = place;
    this.#agent = agent;
    this.#plan = plan;
    this.#flaw = flaw;
    this.#effects = join(place.folder, `effects-${name}`);
  }

  get session(): string | null {
    return this.#session;
  }

  /** One life, and its verdict. */
  async run(ending: Ending): Promise<void> {
    this.log.nextLife();
    const { voice, seed, draftMs } = this.#plan;
    const { address, durability } = this.#place;
    const from = this.log.said.length;
    const retry = this.#retry();
    const job: AgentJob = {
      address,
      durability,
      session: this.#session,
      voice,
      seed,
      draftMs,
      life: this.log.life,
      effects: this.#effects,
      turns: TURNS,
      ...(retry ? { retry } : {}),
      ...(ending.by === "point" ? { point: ending.point } : {}),
      ...(this.#flaw ? { flaw: this.#flaw } : {}),
    };
    const complaint = await liveAgent(this.#agent, job, ending, this.log);
    if (complaint === null) this.kills++;
    else this.#fault("conduct", complaint);
    for (const { event } of this.log.said.slice(from)) this.#hear(event);
    try {
      await this.#place.look((store, journals) => this.#judge(store, journals));
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      this.#fault("conduct", `after a kill the store answered ${error.code}: ${error.message}`);
    }
  }

  /** A prompt that got no answer: send it again, as a client would. */
  #retry(): AgentJob["retry"] {
    const last = this.log.of("start", "resume").at(-1);
    if (last?.op.do !== "start" || last.answer !== "open" || last.op.queued || this.log.life % 2 === 0)
      return undefined;
    return { id: last.op.id, message: last.op.message };
  }

  #hear(event: AgentEvent): void {
    if (event.e === "opened") {
      this.#session = event.session;
      if (this.#shown !== null && event.shown !== this.#shown)
        this.#fault("conduct", `a reader saw ${this.#shown}, but the next writer ${event.shown}`);
      this.#shown = null;
    }
    if (event.e !== "no") return;
    const { op } = this.log.said.findLast(
      (one) => one.life === this.log.life && one.event.e === "try" && one.event.n === event.n,
    )!.event as Extract<AgentEvent, { e: "try" }>;
    if (!REFUSALS[op.do]?.includes(event.code))
      this.#fault("conduct", `${op.do} was refused: ${event.code}: ${event.message}`);
  }

  async #judge(store: Store, journals: JournalStore): Promise<void> {
    if (this.#session === null) return;
    const history = await Array.fromAsync(journals.history(this.#session));
    const reading = await store.read<Message>(this.#session);
    const { damaged, missing } = reading.recovery;
    if (damaged.length + missing.length > 0) this.#fault("conduct", `damage: ${JSON.stringify({ damaged, missing })}`);
    this.#shown = shownBy(reading);
    const { log } = this;
    const { voice, draftMs } = this.#plan;
    const effects = effectsIn(this.#effects);
    for (const { what, message } of judgeConversation({
      log,
      voice: voiceOf(voice),
      draftMs,
      history,
      reading,
      effects,
    }))
      this.#fault(what, message);
  }

  /** Every later check finds the same fault again: count it once. */
  #fault(what: ConversationFault["what"], message: string): void {
    if (!this.faults.some((one) => one.message === message)) this.faults.push({ what, message });
  }
}
