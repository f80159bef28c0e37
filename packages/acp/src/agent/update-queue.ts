import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";

/** A longer text is sent in several chunks. */
const CHUNK_CHARS_MAX = 64 * 1024;
/** So many pieces of text are kept before they are joined. */
const PIECES_MAX = 1024;

/** The newest of these says everything that the ones before it said. */
const REPLACED = new Set<SessionUpdate["sessionUpdate"]>([
  "available_commands_update",
  "config_option_update",
  "current_mode_update",
  "plan",
  "session_info_update",
  "usage_update",
]);

/** An update that waits, or somebody who waits for those before it. */
interface Waiting {
  update: SessionUpdate | null;
  /** More text of the same message, after that of the update. */
  pieces: string[];
  chars: number;
  /** What later updates can change this one instead of being added; null if none can. */
  readonly key: string | null;
  readonly onReached: (() => void) | null;
}

/**
 * Sends updates in order, one at a time, as fast as the editor reads them. Those that wait are merged: chunks of a
 * message become longer ones, and of a call, a plan or a setting the newest state is kept. So what waits is never more
 * than the conversation itself, however long the editor does not read, and the editor is shown the same in the end.
 */
export class UpdateQueue {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  readonly #waiting = new Set<Waiting>();
  readonly #byKey = new Map<string, Waiting>();
  #last: Waiting | null = null;
  #isSending = false;

  /** `send`: resolves when there is room for the next one. */
  constructor(send: (update: SessionUpdate) => Promise<void>) {
    this.#send = send;
  }

  push(update: SessionUpdate): void {
    if (this.#merge(update)) return;
    this.#add({ update, pieces: [], chars: textIn(update)?.length ?? 0, key: keyOf(update), onReached: null });
  }

  /** Resolves when everything that was pushed so far is sent, or cannot be sent. */
  sent(): Promise<void> {
    if (!this.#isSending) return Promise.resolve();
    return new Promise((resolve) => {
      this.#add({ update: null, pieces: [], chars: 0, key: null, onReached: resolve });
    });
  }

  #add(waiting: Waiting): void {
    this.#waiting.add(waiting);
    this.#last = waiting;
    if (waiting.key !== null) this.#byKey.set(waiting.key, waiting);
    if (!this.#isSending) void this.#sendAll();
  }

  /** Whether one that waits says this too now. */
  #merge(update: SessionUpdate): boolean {
    const last = this.#last;
    const text = textIn(update);
    if (last?.update && text !== null && isSameMessage(last.update, update)) {
      if (last.chars + text.length > CHUNK_CHARS_MAX) return false;
      last.pieces.push(text);
      last.chars += text.length;
      if (last.pieces.length > PIECES_MAX) last.pieces = [last.pieces.join("")];
      return true;
    }
    const key = update.sessionUpdate === "tool_call" ? null : keyOf(update);
    const waiting = key === null ? null : this.#byKey.get(key);
    if (!waiting?.update) return false;
    const { sessionUpdate } = waiting.update;
    waiting.update = { ...waiting.update, ...update, sessionUpdate } as SessionUpdate;
    return true;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (const waiting of this.#waiting) {
      this.#waiting.delete(waiting);
      if (this.#last === waiting) this.#last = null;
      if (waiting.key !== null && this.#byKey.get(waiting.key) === waiting) this.#byKey.delete(waiting.key);
      waiting.onReached?.();
      if (!waiting.update) continue;
      try {
        await this.#send(wholeOf(waiting.update, waiting.pieces));
      } catch {
        // The editor is gone: the turn goes on, and is recorded.
      }
    }
    this.#isSending = false;
  }
}

function keyOf(update: SessionUpdate): string | null {
  if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update")
    return `call ${update.toolCallId}`;
  return REPLACED.has(update.sessionUpdate) ? update.sessionUpdate : null;
}

/** The text of a chunk that says nothing else, and names its message. */
function textIn(update: SessionUpdate): string | null {
  if (update.sessionUpdate !== "agent_message_chunk" && update.sessionUpdate !== "agent_thought_chunk") return null;
  const isPlain = update.messageId != null && update.content.type === "text";
  return isPlain ? (update.content as { readonly text: string }).text : null;
}

function isSameMessage(a: SessionUpdate, b: SessionUpdate): boolean {
  return (
    a.sessionUpdate === b.sessionUpdate &&
    textIn(a) !== null &&
    "messageId" in a &&
    "messageId" in b &&
    a.messageId === b.messageId
  );
}

function wholeOf(update: SessionUpdate, pieces: readonly string[]): SessionUpdate {
  const text = textIn(update);
  if (text === null || pieces.length === 0) return update;
  return { ...update, content: { type: "text", text: text + pieces.join("") } } as SessionUpdate;
}
