import type { Shape } from "../shape.ts";

/**
 * For APIs that require consecutive messages of one role to be joined. A message that needs no joining is passed on as
 * recorded.
 */
export class MergedRoles<M> {
  readonly #turns: Turn<M>[] = [];

  /**
   * `whole`: the message itself, if the parts are all of its content, unchanged. `rest`: its other members, if it must
   * be rebuilt.
   */
  add(role: string, parts: readonly Shape[], whole: M | null, rest: Shape = NOTHING): void {
    if (parts.length === 0) return;
    const last = this.#turns[this.#turns.length - 1];
    if (last?.role === role) {
      // Copied only now: most turns are never joined.
      last.joined ??= [...last.parts];
      for (const part of parts) last.joined.push(part);
      last.parts = last.joined;
      last.whole = null;
      if (rest !== NOTHING) last.rest = { ...last.rest, ...rest };
    } else {
      this.#turns.push({ role, parts, joined: null, whole, rest });
    }
  }

  get last(): string | null {
    return this.#turns.at(-1)?.role ?? null;
  }

  messages(make: (role: string, parts: readonly Shape[], rest: Shape) => M): M[] {
    return this.#turns.map((turn) => turn.whole ?? make(turn.role, turn.parts, turn.rest));
  }
}

const NOTHING: Shape = {};

interface Turn<M> {
  readonly role: string;
  parts: readonly Shape[];
  joined: Shape[] | null;
  whole: M | null;
  rest: Shape;
}

/** Replaces a beginning that is not shown, where the first message must be the user's. */
export const BEGINNING = "(The conversation starts here.)";
