import type { Handlers } from "./context.ts";

export const recordingHandlers: Handlers<
  | "createRecording"
  | "takeRecording"
  | "getRecording"
  | "releaseRecording"
  | "record"
  | "getRecordedMessages"
  | "requestModel"
> = {
  createRecording: async ({ body }, { recordings }) => ({ status: 201, body: await recordings.create(body) }),
  takeRecording: async ({ params: { id }, body: { take } }, { recordings }) => ({
    status: 200,
    body: await recordings.take(id, take),
  }),
  getRecording: async ({ params: { id }, query }, { recordings }) => ({
    status: 200,
    body: await recordings.state(id, query.recorder),
  }),
  releaseRecording: async ({ params: { id }, query }, { recordings }) => {
    await recordings.release(id, query.recorder);
    return { status: 204 };
  },
  record: async ({ params: { id }, body }, { recordings, c }) => {
    const { recorded, repeated } = await recordings.record(id, body.recorder, body.key, body.record);
    if (repeated) c.header("idempotent-replayed", "true");
    return { status: 200, body: recorded };
  },
  getRecordedMessages: async ({ params: { id }, query: { from, limit } }, { recordings }) => ({
    status: 200,
    body: await recordings.messages(id, from, limit),
  }),
  requestModel: async ({ params: { id }, body }, { recordings }) => ({
    status: 200,
    body: await recordings.request(id, body.recorder, body.dialect),
  }),
};
