import { isHoldfastError } from "holdfast";
import { AgentEnded, AgentError, TurnParked } from "../record/holdfast-to-agent.ts";
import { Lanes } from "../record/lanes.ts";
import { INTERNAL, lineOf, NOT_FOUND, type Params, type RequestId } from "../record/message.ts";
import { SessionSettings, type SettingRequest } from "./session-settings.ts";
import { changeBy, changeByRequest, type ShownChange } from "./shown-change.ts";

const BUSY =
  "This session is open in another editor or window. Nothing was changed. Close it there, and load it again.";

/** Where an editor's lines go. Resolves when there is room for more. */
export interface ClientOutput {
  /** `answers`: the id of the editor's request that the line answers. `shown`: what the editor shows after it. */
  write(line: Buffer, answers?: RequestId, shown?: ShownChange | null): Promise<void>;
}

/** An editor that is attached, or was. */
export class Client {
  /** The first editor of an agent: its messages pass unchanged. */
  readonly isFirst: boolean;
  /** What it says, by session. */
  readonly lanes: Lanes = new Lanes();
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

  /** Updates of a session, as lines. */
  writeUpdates(lines: Buffer, session: string, updates: readonly Params[]): Promise<void> {
    return this.#output.write(lines, undefined, changeBy(session, updates));
  }

  /** A request of the agent. `call`: what the person is asked about. */
  writeRequest(line: Buffer, id: RequestId, session: string | null, call: string | null): Promise<void> {
    return this.#output.write(line, undefined, changeByRequest(id, session, call));
  }

  answer(id: RequestId, answer: Params): Promise<void> {
    return this.#output.write(lineOf({ id, ...answer }), id);
  }

  /** The request failed here, or at the agent that we asked for it. */
  refuse(id: RequestId, error: unknown): Promise<void> {
    if (error instanceof AgentError && error.code !== null) {
      const { code, message, data } = error;
      return this.answer(id, { error: { code, message, ...(data === undefined ? {} : { data }) } });
    }
    const code = isHoldfastError(error, "SESSION_NOT_FOUND") ? NOT_FOUND : INTERNAL;
    const words = error instanceof Error ? error.message : String(error);
    const message = isHoldfastError(error, "SESSION_BUSY") ? BUSY : words;
    const data = error instanceof AgentEnded ? { data: { interrupted: true } } : dataOf(error);
    return this.answer(id, { error: { code, message, ...data } });
  }
}

/** What a program can tell the failure by. */
function dataOf(error: unknown): Params {
  if (error instanceof TurnParked) return { data: { code: "TURN_PARKED" } };
  const cause = isHoldfastError(error) ? error : error instanceof Error ? error.cause : null;
  if (!isHoldfastError(cause)) return {};
  const { holder } = cause.facts;
  return { data: { code: cause.code, ...(holder === undefined ? {} : { holder }) } };
}

/** Told what an editor opened a session with, and what it has chosen since; null when it closed the session. */
export type OnOpened = (session: string, params: Params | null, chosen: readonly SettingRequest[]) => Promise<void>;

/** A session that was opened: with what, and what was chosen since. */
export type OpenedSession = readonly [session: string, params: Params, chosen?: readonly SettingRequest[]];

/**
 * With what an editor opened each session (its folder, its MCP servers), and how it is set since. May hold secrets, so
 * it is never recorded. `onOpened` can keep it in the memory of another process, for when this one dies.
 */
export class OpenedWith {
  readonly #params = new Map<string, Params>();
  readonly #settings = new Map<string, SessionSettings>();
  readonly #onOpened: OnOpened;

  constructor(onOpened: OnOpened = async () => undefined) {
    this.#onOpened = onOpened;
  }

  /** From a process that has died. */
  continueFrom(opened: readonly OpenedSession[]): void {
    for (const [session, params, chosen] of opened) {
      this.#params.set(session, params);
      this.#settings.set(session, new SessionSettings(chosen));
    }
  }

  of(session: string): Params | null {
    return this.#params.get(session) ?? null;
  }

  settings(session: string): SessionSettings {
    const known = this.#settings.get(session);
    if (known) return known;
    const settings = new SessionSettings();
    this.#settings.set(session, settings);
    return settings;
  }

  async set(session: string, params: Params): Promise<void> {
    this.#params.set(session, params);
    await this.#onOpened(session, params, this.settings(session).chosen);
  }

  /** What was chosen has changed. */
  async chose(session: string): Promise<void> {
    const params = this.of(session);
    if (params) await this.#onOpened(session, params, this.settings(session).chosen);
  }

  async delete(session: string): Promise<void> {
    this.#params.delete(session);
    this.#settings.delete(session);
    await this.#onOpened(session, null, []);
  }
}
