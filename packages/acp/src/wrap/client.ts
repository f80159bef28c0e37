import { isHoldfastError } from "holdfast";
import { INTERNAL, lineOf, type Params, type RequestId } from "./message.ts";

const NOT_FOUND = -32002;
const BUSY =
  "This session is open in another editor or window. Nothing was changed. Close it there, and load it again.";

/** Where an editor's lines go. Resolves when there is room for more. */
export interface ClientOutput {
  /** `answers`: the id of the editor's request that the line answers. */
  write(line: Buffer, answers?: RequestId): Promise<void>;
}

/** An editor that is attached, or was. */
export class Client {
  /** The first editor of an agent: its messages pass unchanged. */
  readonly isFirst: boolean;
  readonly #number: number;
  readonly #output: ClientOutput;
  /** The sessions that it has opened. */
  readonly #sessions = new Set<string>();

  constructor(number: number, output: ClientOutput) {
    this.#number = number;
    this.isFirst = number === 1;
    this.#output = output;
  }

  /** The agent may still work on a request of an earlier editor with the same id. */
  idForAgent(id: RequestId): RequestId {
    return this.isFirst ? id : `holdfast:${this.#number}:${JSON.stringify(id)}`;
  }

  opened(session: string): void {
    this.#sessions.add(session);
  }

  /** A later editor hears nothing of sessions that it has not opened. */
  hears(session: string | null): boolean {
    return this.isFirst || session === null || this.#sessions.has(session);
  }

  write(line: Buffer, answers?: RequestId): Promise<void> {
    return this.#output.write(line, answers);
  }

  answer(id: RequestId, answer: Params): Promise<void> {
    return this.#output.write(lineOf({ id, ...answer }), id);
  }

  /** The request failed here. */
  refuse(id: RequestId, error: unknown): Promise<void> {
    const code = isHoldfastError(error, "SESSION_NOT_FOUND") ? NOT_FOUND : INTERNAL;
    const message = error instanceof Error ? error.message : String(error);
    return this.answer(id, { error: { code, message: isHoldfastError(error, "SESSION_BUSY") ? BUSY : message } });
  }
}

/** A request of an editor that the agent has not answered. */
export interface FromClient {
  readonly client: Client;
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
}

/** Told what an editor opened a session with; null when it closed the session. */
export type OnOpened = (session: string, params: Params | null) => Promise<void>;

/**
 * With what an editor opened each session: its folder, its MCP servers. May hold secrets, so it is never recorded.
 * `onOpened` can keep it in the memory of another process, for when this one dies.
 */
export class OpenedWith {
  readonly #params = new Map<string, Params>();
  readonly #onOpened: OnOpened;

  constructor(onOpened: OnOpened = async () => undefined) {
    this.#onOpened = onOpened;
  }

  /** From a process that has died. */
  continueFrom(opened: readonly (readonly [session: string, params: Params])[]): void {
    for (const [session, params] of opened) this.#params.set(session, params);
  }

  of(session: string): Params | null {
    return this.#params.get(session) ?? null;
  }

  async set(session: string, params: Params): Promise<void> {
    this.#params.set(session, params);
    await this.#onOpened(session, params);
  }

  async delete(session: string): Promise<void> {
    this.#params.delete(session);
    await this.#onOpened(session, null);
  }
}
