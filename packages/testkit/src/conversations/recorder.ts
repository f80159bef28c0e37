import { isHoldfastError } from "holdfast";
import { tellLine } from "../kill/pipe.ts";
import type { AgentEvent, Op } from "./events.ts";

export const tell = (event: AgentEvent): void => tellLine(event);

/** The library refused, and the laboratory knows. */
export class Refused extends Error {}

/** Reports each call before it is made, and its answer afterwards. */
export class Recorder {
  #n = 0;
  #marks = 0;
  readonly #life: number;

  constructor(life: number) {
    this.#life = life;
  }

  mark(kind: string): string {
    return `«${kind}${this.#life}.${this.#marks++}»`;
  }

  serial(): string {
    return `${this.#life}x${this.#marks++}`;
  }

  /** A call that begins and ends elsewhere. */
  announce(op: Op): { ok(): void; no(error: unknown): never } {
    const n = this.#n++;
    tell({ e: "try", n, op });
    return {
      ok: () => tell({ e: "ok", n }),
      no: (error) => {
        if (!isHoldfastError(error)) throw error;
        tell({ e: "no", n, code: error.code, message: error.message });
        throw new Refused(error.message, { cause: error });
      },
    };
  }

  async try<T>(op: Op, act: () => Promise<T>): Promise<T> {
    const { ok, no } = this.announce(op);
    try {
      const answer = await act();
      ok();
      return answer;
    } catch (error) {
      return no(error);
    }
  }

  /** A call that may be refused: then nothing has happened. */
  async maybe(op: Op, act: () => Promise<unknown>): Promise<boolean> {
    try {
      await this.try(op, act);
      return true;
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  }
}
