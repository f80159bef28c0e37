import { createHash } from "node:crypto";
import type { NewRecord } from "holdfast/store";
import { APP } from "./thread.ts";

/** The label of a session that names its thread. */
export const THREAD_LABEL = "langgraph.thread";

/** A session's labels may be this long together. */
const THREAD_ID_CHARS_MAX = 4096;

/** The session of a thread. It follows from the thread's id, so that two processes cannot create two of them. */
export function sessionOf(threadId: string): string {
  const hash = createHash("sha256").update(`langgraph thread ${threadId}`).digest("hex");
  // Version 8 of UUIDs: the application decides what is in it.
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** The first record of a thread's session. The messages that people are shown are in OpenAI's form (transcript.ts). */
export function attributesOf(threadId: string): NewRecord {
  if (threadId.length > THREAD_ID_CHARS_MAX) {
    throw new RangeError(`A thread id has at most ${THREAD_ID_CHARS_MAX} characters; this one has ${threadId.length}.`);
  }
  return { kind: "session", dialect: "openai-chat", app: APP, labels: { [THREAD_LABEL]: threadId } };
}
