import type { AgentEvent, Op } from "./events.ts";

/** One library call, and its outcome as far as the agent knows. */
export interface LoggedCall<O extends Op = Op> {
  readonly op: O;
  readonly life: number;
  /** The positions of the call and of its answer among all events. */
  readonly at: number;
  answeredAt: number;
  answer: "open" | "ok" | "no";
}

export interface LoggedEvent {
  readonly life: number;
  readonly at: number;
  readonly event: AgentEvent;
}

/** Everything that the agents of one session tried and were told, in order, over all their lives. */
export class Log {
  readonly tried: LoggedCall[] = [];
  readonly said: LoggedEvent[] = [];
  #life = 0;
  readonly #byNumber = new Map<string, LoggedCall>();

  get life(): number {
    return this.#life;
  }
  nextLife(): void {
    this.#life++;
  }

  hear(event: AgentEvent): void {
    const at = this.said.length;
    this.said.push({ life: this.#life, at, event });
    if (event.e === "try") {
      const tried: LoggedCall = {
        op: event.op,
        life: this.#life,
        at,
        answeredAt: Number.POSITIVE_INFINITY,
        answer: "open",
      };
      this.tried.push(tried);
      this.#byNumber.set(`${this.#life} ${event.n}`, tried);
    } else if (event.e === "ok" || event.e === "no") {
      const tried = this.#byNumber.get(`${this.#life} ${event.n}`);
      if (!tried) throw new Error(`an answer to call ${event.n}, which was never announced`);
      tried.answer = event.e;
      tried.answeredAt = at;
    }
  }

  of<D extends Op["do"]>(...kinds: readonly D[]): LoggedCall<Extract<Op, { do: D }>>[] {
    const wanted: readonly string[] = kinds;
    return this.tried.filter(({ op }) => wanted.includes(op.do)) as LoggedCall<Extract<Op, { do: D }>>[];
  }

  /** What was acknowledged. */
  ok<D extends Op["do"]>(...kinds: readonly D[]): LoggedCall<Extract<Op, { do: D }>>[] {
    return this.of(...kinds).filter(({ answer }) => answer === "ok");
  }

  saidOf<E extends AgentEvent["e"]>(kind: E): (LoggedEvent & { readonly event: Extract<AgentEvent, { e: E }> })[] {
    return this.said.filter(({ event }) => event.e === kind) as (LoggedEvent & {
      readonly event: Extract<AgentEvent, { e: E }>;
    })[];
  }
}
