import { idFrom } from "holdfast";
import type { NewRecord } from "holdfast/store";

/** The name under which threads are listed, and their lease is held. */
export const APP = "langgraph";

/** The label of a session that names its thread. */
export const THREAD_LABEL = "langgraph.thread";

/** A session's labels may be this long together. */
const THREAD_ID_CHARS_MAX = 4096;

/** The session of a thread. It follows from the thread's id, so that two processes cannot create two of them. */
export function sessionOf(threadId: string): string {
  return idFrom(`langgraph thread ${threadId}`);
}

/** The first record of a thread's session. The messages that people are shown are in OpenAI's form (transcript.ts). */
export function attributesOf(threadId: string): NewRecord {
  if (threadId.length > THREAD_ID_CHARS_MAX) {
    throw new RangeError(`A thread id has at most ${THREAD_ID_CHARS_MAX} characters; this one has ${threadId.length}.`);
  }
  return { kind: "session", dialect: "openai-chat", app: APP, labels: { [THREAD_LABEL]: threadId } };
}
