import { type DialectName, dialects } from "holdfast";
import { z } from "zod";
import type { Operation } from "./operation.ts";
import { limit } from "./operation-parts.ts";
import { openCallState, sessionId } from "./session.ts";
import { usage } from "./transcript.ts";

/**
 * For agents in any language: the server is their recorder, and makes the same calls as a program in TypeScript. The
 * guide docs/guides/recorder.md says what each operation promises and assumes.
 */

const id = z.strictObject({ id: sessionId });
const recorder = z.string().min(1).max(100).describe("From `recorder` of the recording.");
const dialect = z.enum(Object.keys(dialects) as DialectName[]).describe("The format of the messages.");
const key = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => text.isWellFormed(), { message: "A key must be well-formed Unicode." })
  .describe("Chosen by the agent, unique in the session. The same key again is recorded once, and answered the same.");
const message = z.record(z.string(), z.unknown()).describe("A message in the session's dialect, as its SDK has it.");
const messages = z.union([message, z.array(message).min(1).max(1000)]);
const messageId = z.string().min(1).max(200).describe("The id of a message of the conversation.");
const call = z.string().min(1).max(1000).describe("The id of the call, as in the message that makes it.");
const json = z.unknown();
const step = z.string().min(1).max(200).describe("The step's name: unique in its call, and the same in every run.");
const appState = z
  .record(z.string().min(1).max(256), json)
  .describe("State of the agent's own, by name, recorded in one unit with this. Null takes a value away.");
const given = {
  appState: appState.optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  model: z.string().max(1024).optional().describe("The model that made it, or that will be asked next."),
  usage: z.record(z.string(), z.unknown()).optional().describe("What the answer used; added to the turn's usage."),
};
const outcome = z
  .strictObject({ value: json.optional(), error: z.string().optional() })
  .refine(({ value, error }) => (value === undefined) !== (error === undefined), {
    message: "An outcome has either a value or an error.",
  });

const kinds = [
  z.strictObject({
    type: z.literal("turn.start"),
    prompt: messages.optional().describe("The prompt; system messages may come before it."),
    queued: z.string().optional().describe("Instead: the id of a queued prompt, which is taken from the queue."),
    ...given,
  }),
  z.strictObject({
    type: z.literal("turn.resume"),
    calls: z
      .enum(["close", "rerun"])
      .default("close")
      .describe(
        "Calls without a result. `close`: the model is told how far each got. `rerun`: those that are safe to run again stay open.",
      ),
    keep: z
      .array(call)
      .max(1000)
      .optional()
      .describe("Calls that stay open, whatever `calls` says: those that a person has approved, for example."),
    outcomes: z.record(z.string(), outcome).optional().describe("By call: outcomes that the agent knows after all."),
    draft: z.enum(["discard", "keep"]).default("discard").describe("What was streamed. `keep`: the model sees it."),
  }),
  z.strictObject({
    type: z.literal("messages"),
    messages: messages.optional().describe("All messages of one response together."),
    queued: z.string().optional().describe("Instead: the id of a queued prompt, to steer the turn with."),
    end: z.boolean().optional().describe("The final answer: ends the turn, in one unit with it."),
    ...given,
  }),
  z.strictObject({
    type: z.literal("tool.started"),
    call,
    replay: z.enum(["never", "safe"]).optional().describe("`safe`: running it twice does no harm."),
    probe: z.literal(true).optional().describe("The agent can ask what happened to it, and will (`tool.settled`)."),
    child: z.string().max(200).optional().describe("The session that does the work."),
    name: z.string().max(1000).optional().describe("For a tool that starts before its call is recorded."),
    input: json.optional(),
  }),
  z.strictObject({
    type: z.literal("tool.process"),
    call,
    pid: z.int().min(1),
    started: z
      .string()
      .min(1)
      .max(200)
      .describe("Its start time in any form, to tell it from a later process with the same pid."),
    group: z.literal(true).optional().describe("`pid` leads a process group."),
  }),
  z.strictObject({
    type: z.literal("tool.ended"),
    call,
    value: json.optional().describe("The result; or `error`."),
    error: z.string().optional(),
    shown: message.optional().describe("What the model sees instead: a message that holds the result."),
    appState: appState.optional(),
  }),
  z.strictObject({
    type: z.literal("tool.settled"),
    call,
    value: json.optional().describe("What its service says that it returned; or `error`, or `didNotHappen`."),
    error: z.string().optional(),
    didNotHappen: z
      .literal(true)
      .optional()
      .describe("It has not taken effect and no longer can, so it counts as never started and may run."),
  }),
  z.strictObject({
    type: z.literal("step.started"),
    call,
    step,
    replay: z.enum(["never", "safe"]).optional().describe("`safe`: running it twice does no harm."),
    didNotHappen: z
      .literal(true)
      .optional()
      .describe("The answer was `unknown`, and its service was asked: it has not taken effect, and may run."),
  }),
  z.strictObject({
    type: z.literal("step.ended"),
    call,
    step,
    value: json.optional().describe("The result, or null; or `error`."),
    error: z.string().optional(),
    source: z.string().max(200).optional().describe("Who says so, if the answer was `unknown`: `probe`, for example."),
  }),
  z.strictObject({
    type: z.literal("draft"),
    deltas: z
      .array(
        z.strictObject({
          part: z.int().optional(),
          text: z.string().optional(),
          reasoning: z.string().optional(),
          call: z.strictObject({ id: z.string(), name: z.string() }).optional(),
          input: z.string().optional(),
        }),
      )
      .min(1)
      .max(10_000)
      .describe("Pieces of the answer to the last request, as they were streamed."),
  }),
  z.strictObject({ type: z.literal("draft.discard"), reason: z.string().max(1000).optional() }),
  z.strictObject({ type: z.literal("draft.restart") }),
  z.strictObject({ type: z.literal("usage"), usage: z.record(z.string(), z.unknown()) }),
  z.strictObject({
    type: z.literal("turn.suspend"),
    reason: z.string().max(1000).describe("`permission`, for example."),
    calls: z.array(call).optional().describe("The calls that wait."),
  }),
  z.strictObject({ type: z.literal("turn.end") }),
  z.strictObject({ type: z.literal("turn.abort"), by: z.string().max(200), reason: z.string().max(1000).optional() }),
  z.strictObject({ type: z.literal("turn.fail"), error: z.string().max(10_000) }),
  z.strictObject({ type: z.literal("queue.put"), prompt: message, metadata: given.metadata, model: given.model }),
  z.strictObject({ type: z.literal("queue.take"), queued: z.string().describe("The queued prompt to withdraw.") }),
  z.strictObject({
    type: z.literal("replace"),
    reason: z.enum(["compaction", "clear", "rewind", "import"]),
    items: z
      .array(
        z.union([
          z.strictObject({ keep: messageId }),
          z.strictObject({ message: message.describe("A new message, such as a summary.") }),
        ]),
      )
      .max(100_000)
      .describe("The whole new conversation, in order. Calls stay with their results."),
  }),
  z.strictObject({ type: z.literal("undo") }),
  z.strictObject({
    type: z.literal("edit"),
    ids: z.array(messageId).min(1).max(1000).describe("All messages of each step."),
    shown: z.array(message).max(1000).describe("What the conversation has in their place."),
    reason: z.string().min(1).max(1000),
    now: z.boolean().optional().describe("The model sees the change at once, not from the next turn on."),
  }),
  z.strictObject({
    type: z.literal("patch"),
    message: messageId,
    metadata: z.record(z.string(), z.unknown()).describe("A JSON merge patch for the message's metadata."),
  }),
  z.strictObject({ type: z.literal("note"), name: z.string().min(1).max(200), value: json }),
  z.strictObject({ type: z.literal("title"), title: z.string() }),
] as const;

/** One call of a session or its turn. */
export const record = z.discriminatedUnion("type", kinds).meta({ id: "RecordToMake" });
export type RecordToMake = z.output<typeof record>;

const openCall = z
  .object({
    id: z.string(),
    message: z.string().nullable(),
    name: z.string(),
    input: json,
    state: openCallState,
    startedAt: z.string().optional(),
    replay: z.enum(["never", "safe"]).optional(),
    probe: z.literal(true).optional(),
    child: z.string().optional(),
    key: z.string().optional().describe("The idempotency key that its tool was given."),
    steps: z
      .array(z.object({ name: z.string(), state: z.enum(["finished", "failed", "unknown"]) }))
      .optional()
      .describe("How far each of its steps got, in the order in which they started."),
  })
  .meta({ id: "OpenCall", description: "A call without a result, and how far it got." });

const interruption = z
  .object({
    turn: z.int(),
    startedAt: z.string(),
    lastAt: z.string(),
    resumes: z.int().describe("How often it has been resumed: give up on a turn that always fails."),
    prompt: z.object({ id: z.string(), message: json }),
    answered: z.boolean().describe("Only its end is missing: do not ask the model again."),
    how: z
      .object({ kind: z.enum(["killed", "signal", "aborted", "failed", "handed-over", "suspended"]) })
      .catchall(z.unknown()),
    draft: z
      .object({
        text: z.string(),
        reasoning: z.string(),
        calls: z.array(z.object({ id: z.string(), name: z.string(), input: z.string() })),
      })
      .nullable()
      .describe("What had been streamed."),
    calls: z.array(openCall),
  })
  .meta({ id: "RecordedInterruption", description: "What was in flight when the last turn was cut off." });

const recordingState = z
  .object({
    session: sessionId,
    recorder: z.string().nullable().describe("Send it with each record. Null if the caller is not the recorder."),
    dialect: z.string(),
    next: z
      .enum(["start", "resume", "end", "continue"])
      .describe(
        "What to record next. `start`: a turn. `resume`: the interrupted turn, or start another instead. `end`: the interrupted turn has its answer, so end it. `continue`: a turn is open.",
      ),
    turn: z
      .object({ number: z.int(), calls: z.array(openCall) })
      .nullable()
      .describe("The open turn."),
    interruption: interruption.nullable(),
    queue: z.array(z.object({ id: z.string(), prompt: json })),
    appState: z.record(z.string(), json).describe("The last value of each name that was recorded with a message."),
    usage,
    idleSeconds: z.int().describe("Without any request of its recorder for this long, the session is released."),
  })
  .meta({ id: "RecordingState" });
export type RecordingState = z.output<typeof recordingState>;

export const recording = recordingState
  .extend({ recorder: z.string().describe("Send it with each record.") })
  .meta({ id: "Recording" });
export type Recording = z.output<typeof recording>;

const stepStart = z
  .object({
    state: z
      .enum(["run", "finished", "failed", "unknown"])
      .describe(
        "`run`: run it now. `finished`, `failed`: an earlier run did, with `value` or `error`. `unknown`: an earlier run started it; do not run it, but ask its service.",
      ),
    key: z.string().describe("The step's idempotency key, to send to its service."),
    value: json.optional(),
    error: z.string().optional(),
  })
  .meta({ id: "StepStart", description: "Whether a step may run." });

const recorded = z
  .object({
    key,
    seq: z.int().describe("The seq of its first record in the journal."),
    last: z.int().describe("The seq of its last record."),
    ids: z.array(z.string()).describe("The ids of the messages it recorded."),
    call: z
      .object({ key: z.string().describe("Send it to the service: the same whenever the call runs again.") })
      .optional()
      .describe("Of `tool.started`."),
    step: stepStart.optional().describe("Of `step.started`."),
  })
  .meta({ id: "Recorded" });
export type Recorded = z.output<typeof recorded>;

const recordedMessages = z
  .object({
    count: z.int().describe("How many messages the conversation has."),
    from: z.int().describe("The index of the first one here."),
    messages: z.array(
      z
        .object({
          id: z.string(),
          turn: z.int(),
          step: z.string().describe("Messages of one model response share it."),
          at: z.string(),
          message: json,
          metadata: z.record(z.string(), z.unknown()).optional(),
          model: z.string().optional(),
          synthetic: z.string().optional().describe("Why Holdfast made it up: nobody said it."),
          incomplete: z.literal(true).optional(),
          late: z.literal(true).optional().describe("A result that the model does not see."),
          replacedBy: z.string().optional().describe("The edit that took its place."),
        })
        .meta({ id: "RecordedMessage" }),
    ),
  })
  .meta({ id: "RecordedMessages" });
export type RecordedMessages = z.output<typeof recordedMessages>;

const request = z
  .object({
    turn: z.int(),
    dialect,
    messages: z.array(json).describe("Send them to the model as they are."),
    draft: z.string().describe("The id of the answer that `draft` records stream into."),
  })
  .meta({ id: "ModelRequest" });
export type ModelRequest = z.output<typeof request>;

export const recordingOperations = {
  createRecording: {
    method: "post",
    path: "/recordings",
    tag: "recorder",
    summary: "Create a session and become its recorder",
    description:
      "The session survives a power cut when the answer comes. The same key again leads to the same session.",
    access: "owner",
    body: z.strictObject({
      key: key.optional(),
      dialect,
      title: z.string().max(4096).optional(),
      cwd: z.string().min(1).max(4096).optional().describe("The folder that the agent works in."),
      app: z.string().min(1).max(200).optional().describe("The agent's name."),
      labels: z.record(z.string(), z.string()).optional(),
      parent: z.strictObject({ session: z.string(), call: z.string().optional() }).optional(),
    }),
    answers: { 201: recording },
    problems: [409, 422, 503, 507],
  },
  takeRecording: {
    method: "post",
    path: "/sessions/:id/recording",
    tag: "recorder",
    summary: "Become the recorder of a session",
    description:
      "The server opens the session for writing and holds it for this recorder. What was in flight is in `interruption`. Without `take`, it is refused while another recorder has it; with `take`, that one's open turn is recorded as aborted, and its later records are refused.",
    access: "owner",
    params: id,
    body: z.strictObject({ take: z.boolean().default(false) }),
    answers: { 200: recording },
    problems: [404, 409, 422, 503, 507],
  },
  getRecording: {
    method: "get",
    path: "/sessions/:id/recording",
    tag: "recorder",
    summary: "Where the recording of a session stands",
    description:
      "With the caller's own `recorder`, it also counts as a sign of life, and is refused if the caller is no longer the recorder.",
    access: "owner",
    params: id,
    query: z.strictObject({ recorder: recorder.optional() }),
    answers: { 200: recordingState },
    problems: [404, 409, 422],
  },
  releaseRecording: {
    method: "delete",
    path: "/sessions/:id/recording",
    tag: "recorder",
    summary: "Stop recording a session, so that others can open it",
    description: 'An open turn is recorded as aborted by "close". Repeating it does no harm.',
    access: "owner",
    params: id,
    query: z.strictObject({ recorder }),
    answers: { 204: null },
    problems: [409, 503, 507],
  },
  record: {
    method: "post",
    path: "/sessions/:id/records",
    tag: "recorder",
    summary: "Record one step",
    description:
      "The answer comes when the record is durable. If it does not come, send the same record with the same key again, to this server or another: it is recorded once. A repeated record is answered in the same words, with the header `Idempotent-Replayed: true`.",
    access: "owner",
    params: id,
    body: z.strictObject({ recorder, key, record }),
    answers: { 200: recorded },
    problems: [404, 409, 422, 503, 507],
  },
  getRecordedMessages: {
    method: "get",
    path: "/sessions/:id/recording/messages",
    tag: "recorder",
    summary: "The messages of the conversation with their ids",
    description:
      "For `replace`, `edit` and `patch`, which name messages by their ids. Send the model what `requestModel` answers with, not these.",
    access: "owner",
    params: id,
    query: z.strictObject({
      from: z.coerce.number().int().min(0).optional().describe("The index to start at; default: the last ones."),
      limit: limit(1000, 10_000),
    }),
    answers: { 200: recordedMessages },
    problems: [404, 422],
  },
  requestModel: {
    method: "post",
    path: "/sessions/:id/requests",
    tag: "recorder",
    summary: "Get the messages for the model",
    description:
      "Call it right before the model is asked: what is recorded while the model answers comes after its answer. Records nothing.",
    access: "owner",
    params: id,
    body: z.strictObject({ recorder, dialect: dialect.optional().describe("Default: the session's own.") }),
    answers: { 200: request },
    problems: [409],
  },
} as const satisfies Record<string, Operation>;
