import { cpSync } from "node:fs";
import { join } from "node:path";
import {
  signResponse,
  type Violation,
  validateAiSdk,
  validateAnthropic,
  validateOpenaiChat,
  validateOpenaiResponses,
} from "@holdfast/testkit/internal/providers";
import { type Entry, openStore, type Session, type Store, type StoreOptions } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { place } from "../../place.ts";
import { type MadeStep, type Voice, voices } from "../dialects/dialect-voices.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages have the shapes that their voice gives them.
export type Made = any;

const SILENT: MadeStep = { reasoning: "none", text: null, calls: [], after: null, provider: "none" };

/** What an agent that keeps an array says, in one of the dialects. */
export class Speaker {
  readonly voice: Voice;
  #serial = 0;

  constructor(voice: Voice) {
    this.voice = voice;
  }

  user = (text: string): Made => this.voice.user(text);
  system = (text: string): Made => this.voice.system(text);
  says = (text: string): Made[] => this.step({ text });
  calls = (...ids: string[]): Made[] => this.step({ calls: ids.map((id) => ({ id, name: "read", input: "whole" })) });
  result = (id: string, text: string): Made => this.voice.result({ id, name: "read", input: "whole" }, text, false);
  step = (step: Partial<MadeStep>): Made[] => this.voice.step({ ...SILENT, ...step }, this.#serial++);
}

/**
 * The same message with a cache mark, as agents move one along with the conversation; as it is where there are none.
 */
export function marked({ dialect }: Voice, message: Made): Made {
  const { content } = message;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  if (dialect.name === "openai-responses" || !Array.isArray(parts) || parts.length === 0 || message.role === "system")
    return message;
  const mark =
    dialect.name === "ai-sdk"
      ? { providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } }
      : { cache_control: { type: "ephemeral" } };
  return {
    ...message,
    content: parts.map((part: Made, at: number) => (at === parts.length - 1 ? { ...part, ...mark } : part)),
  };
}

/** A response as it comes from a model that was asked with these messages. */
export function signed({ dialect }: Voice, step: Made[], asked: readonly Made[]): Made[] {
  if (dialect.name !== "anthropic") return step;
  return step.map((message) => ({ ...message, content: signResponse({ messages: asked as Made }, message.content) }));
}

/** What the provider has against a request that ends in a prompt. `steps`: the responses as they came. */
export function judged({ dialect, user }: Voice, shown: readonly Made[], steps: readonly Made[][] = []): Violation[] {
  const endsInPrompt = shown.length > 0 && dialect.role(shown.at(-1)) !== "assistant";
  const view = endsInPrompt ? shown : [...shown, user("and now?")];
  switch (dialect.name) {
    case "anthropic":
      return validateAnthropic(view as Made, { systemMessages: true });
    case "openai-chat":
      return validateOpenaiChat(view as Made);
    case "openai-responses":
      return validateOpenaiResponses(view as Made, { responses: steps as Made });
    default:
      return validateAiSdk(view as Made, { systemMessages: true });
  }
}

export const spoken = ["anthropic", "openai-chat", "ai-sdk", "openai-responses"].map(
  (name) => [name, voices.find(({ dialect }) => dialect.name === name)!] as const,
);

/** A store in a folder, and what is left of it when its process is killed. */
export class World implements AsyncDisposable {
  readonly #places: (Disposable & { path: string })[] = [];
  readonly #stores: Store[] = [];
  readonly #homes = new WeakMap<Session<Made>, string>();
  readonly #options: StoreOptions;

  constructor(options: StoreOptions = {}) {
    this.#options = { durability: "process", ...options };
  }

  get store(): Store {
    return this.#stores.at(-1)!;
  }

  async create(voice: Voice): Promise<Session<Made>> {
    if (this.#stores.length === 0) await this.#open();
    return this.#at(await this.store.create<Made>({ dialect: voice.dialect as Made, draftMs: 1 }));
  }

  /** What another process finds if this one is killed now: the journal as it is on disk, without its lease. */
  async kill(session: Session<Made>): Promise<Session<Made>> {
    const before = this.#homes.get(session)!;
    await this.#open((path) => cpSync(join(before, "sessions"), join(path, "sessions"), { recursive: true }));
    return this.#at(await this.store.resume<Made>(session.id, { draftMs: 1 }));
  }

  #at(session: Session<Made>): Session<Made> {
    this.#homes.set(session, this.#places.at(-1)!.path);
    return session;
  }

  async #open(prepare: (path: string) => void = () => undefined): Promise<void> {
    const here = place();
    this.#places.push(here);
    prepare(here.path);
    this.#stores.push(await openStore(here.path, this.#options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
    for (const here of this.#places) here[Symbol.dispose]();
  }
}

/** What was said, without what Holdfast made up. */
export function said(entries: readonly Entry<Made>[]): Made[] {
  return entries.filter(({ synthetic }) => synthetic === undefined).map(({ message }) => message);
}

/** What the application has in its array: without what it has changed or left out. */
export function inArray(entries: readonly Entry<Made>[]): Made[] {
  return entries.filter(({ replacedBy }) => replacedBy === undefined).map(({ message }) => message);
}

/** The real disk, on which the write of a journal fails that brings the count to 0: there is no space for that one. */
export function fullAt(count: { left: number }): Disk {
  return {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      if (!/sessions.*\.jsonl/.test(path)) return file;
      const write: typeof file.write = (bytes) => {
        count.left -= 1;
        if (count.left === 0) throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
        return file.write(bytes);
      };
      return new Proxy(file, {
        get: (of, name) => {
          if (name === "write") return write;
          const member: unknown = Reflect.get(of, name, of);
          return typeof member === "function" ? member.bind(of) : member;
        },
      });
    },
  };
}
