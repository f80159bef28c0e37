import type { Handlers } from "./context.ts";

export const recorderHandlers: Handlers<
  | "createRecording"
  | "takeRecording"
  | "getRecording"
  | "releaseRecording"
  | "record"
  | "getRecordedMessages"
  | "requestModel"
> = {
  createRecording: async ({ body }, { recorder }) => ({ status: 201, body: await recorder.create(body) }),
  takeRecording: async ({ params: { id }, body: { take } }, { recorder }) => ({
    status: 200,
    body: await recorder.take(id, take),
  }),
  getRecording: async ({ params: { id }, query }, { recorder }) => ({
    status: 200,
    body: await recorder.state(id, query.recorder),
  }),
  releaseRecording: async ({ params: { id }, query }, { recorder }) => {
    await recorder.release(id, query.recorder);
    return { status: 204 };
  },
  record: async ({ params: { id }, body }, { recorder, c }) => {
    const { recorded, repeated } = await recorder.record(id, body.recorder, body.key, body.record);
    if (repeated) c.header("idempotent-replayed", "true");
    return { status: 200, body: recorded };
  },
  getRecordedMessages: async ({ params: { id }, query: { from, limit } }, { recorder }) => ({
    status: 200,
    body: await recorder.messages(id, from, limit),
  }),
  requestModel: async ({ params: { id }, body }, { recorder }) => ({
    status: 200,
    body: await recorder.request(id, body.recorder, body.dialect),
  }),
};
