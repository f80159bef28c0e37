import { z } from "zod";
import { cursor, item, usage } from "./transcript.ts";

export const sessionId = z
  .string()
  .regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  .describe("The session's id.");
const time = z.iso.datetime();
const link = z.object({ session: z.string(), call: z.string().optional() });

export const status = z.enum(["running", "interrupted", "stopped", "failed", "waiting", "paused", "parked", "idle"]);

const summaryMembers = {
  id: sessionId,
  title: z.string(),
  cwd: z.string().optional(),
  app: z.string().optional(),
  at: z.string().describe("When it was last written to."),
  turns: z.int(),
  queued: z.int(),
  status,
  wakeAt: time.optional().describe("When a paused session continues by itself."),
  attempts: z.int().optional().describe("How often its last turn was tried since its last progress."),
  labels: z.record(z.string(), z.string()).optional(),
  parent: link.optional(),
  unreadable: z.object({ code: z.string(), message: z.string() }).optional(),
};

export const summary = z
  .object({ ...summaryMembers, here: z.boolean().describe("This server has it open.") })
  .meta({ id: "Summary", description: "A session in a list." });

export const sessionPage = z
  .object({ sessions: z.array(summary), next: z.string().optional().describe("Pass it as `after`.") })
  .meta({ id: "SessionPage" });

export const trashPage = z
  .object({
    sessions: z.array(
      z.object({
        id: sessionId,
        title: z.string(),
        cwd: z.string().optional(),
        app: z.string().optional(),
        turns: z.int(),
        queued: z.int(),
        parent: link.optional(),
        trashedAt: time,
      }),
    ),
  })
  .meta({ id: "TrashPage" });

export const searchPage = z
  .object({
    hits: z.array(
      z.object({
        session: sessionId,
        message: z.string().describe("The message; empty for a hit in the title."),
        excerpt: z.string(),
      }),
    ),
    incomplete: z.array(z.object({ session: z.string(), why: z.string().nullable() })),
  })
  .meta({ id: "SearchPage" });

export const image = z
  .strictObject({
    name: z.string().max(1000),
    mediaType: z.string().regex(/^image\/[\w.+-]+$/),
    data: z.base64().min(1),
  })
  .meta({ id: "PromptImage" });

export const queued = z
  .object({ id: z.string(), text: z.string(), images: z.array(image).optional() })
  .meta({ id: "Queued" });

const how = z
  .object({ kind: z.enum(["killed", "signal", "aborted", "failed", "handed-over", "suspended"]) })
  .catchall(z.unknown());

export const holder = z
  .object({ pid: z.int(), host: z.string(), app: z.string(), since: time })
  .meta({ id: "Holder", description: "The process that has the session open." });

/** Those of `OpenCall` in the library, which clients do not load. */
export const openCallState = z.enum(["never-started", "outcome-unknown", "unrecorded", "awaiting", "provider"]);

const folderChanges = z
  .object({
    files: z.array(
      z.object({
        path: z.string().describe("Relative to the folder."),
        change: z.enum(["new", "changed", "removed"]),
        lines: z.object({ added: z.int(), removed: z.int() }).optional(),
        diff: z
          .array(z.object({ kind: z.enum(["same", "removed", "added", "gap"]), text: z.string() }))
          .optional()
          .describe("The lines that differ, among some that do not. Shortened."),
      }),
    ),
    more: z.int().describe("How many changed files are not listed."),
    gap: z.string().nullable().describe("What could not be compared."),
  })
  .meta({
    id: "FolderChanges",
    description: "What has changed in the working folder since a call began, by whomever.",
  });

const callAccount = z
  .object({
    id: z.string(),
    message: z.string().nullable(),
    name: z.string(),
    input: z.unknown(),
    state: z.enum([...openCallState.options, "running", "ended"]),
    effect: z.enum(["none", "possible", "done"]).describe("Whether it has taken effect."),
    onFinish: z
      .enum(["run", "run-again", "ask", "wait", "settle", "tell-model", "leave"])
      .optional()
      .describe("What happens to it when the turn goes on. Decided when the session is opened: missing before."),
    process: z
      .object({
        pid: z.int(),
        running: z.boolean(),
        exitCode: z.int().optional(),
        printed: z.string().optional().describe("The end of what it has printed so far."),
      })
      .optional(),
    changes: folderChanges.optional(),
    words: z.string().describe("How far it got, for people."),
  })
  .meta({ id: "CallAccount", description: "A call without a recorded result." });

const act = z.union([z.literal(true), z.object({ no: z.string(), words: z.string() })]);

export const account = z
  .object({
    session: sessionId,
    cursor: cursor.nullable(),
    app: z.string().nullable().describe("The program that wrote the session."),
    state: status,
    holder: holder.nullable(),
    turn: z.int().nullable(),
    interruption: z.object({ startedAt: time, lastAt: time, resumes: z.int(), answered: z.boolean(), how }).nullable(),
    calls: z.array(callAccount),
    settled: z
      .array(z.object({ id: z.string(), name: z.string(), source: z.string(), unstarted: z.boolean() }))
      .describe(
        "Calls of that turn whose outcome was unknown, and is known since somebody was asked (`source`: `probe` if the tool's service was). `unstarted`: the call has not taken effect.",
      ),
    queued: z.int(),
    can: z
      .object({ prompt: act, finish: act, retry: act, leave: act, answer: act, stop: act, fork: act, takeOver: act })
      .describe("What can be done with it now: true, or why not."),
    words: z.object({ status: z.string(), detail: z.array(z.string()) }).describe("For people."),
  })
  .meta({ id: "Account", description: "What is true of a session. A newer account replaces an older one." });

export const interruption = z
  .object({
    turn: z.int(),
    at: time,
    resumes: z.int(),
    how,
    words: z.string().describe("The same, for people."),
    prompt: z.string(),
    answered: z.boolean(),
    text: z.string().describe("The part of the answer that was streamed."),
    calls: z.array(callAccount),
  })
  .meta({ id: "Interruption", description: "What was in flight when the last turn was cut off." });

const target = z.object({ kind: z.enum(["none", "file", "folder", "other", "unknown"]) }).catchall(z.unknown());

export const ask = z
  .object({
    call: z.string(),
    agent: z.object({ session: z.string(), call: z.string(), task: z.string() }).optional(),
    name: z.string(),
    input: z.unknown(),
    summary: z.string(),
    rule: z.string().nullable(),
    always: z.string(),
    cwd: z.string(),
    path: z.string().nullable(),
    target,
    digest: z.string(),
    parts: z.array(z.object({ kind: z.enum(["fact", "text", "json", "diff"]), label: z.string(), text: z.string() })),
    choices: z.array(
      z.object({
        key: z.string(),
        word: z.string(),
        label: z.string(),
        answer: z.enum(["allow", "always", "project", "deny"]),
        asksWhy: z.literal(true).optional(),
        isDefault: z.literal(true).optional(),
      }),
    ),
  })
  .meta({ id: "PermissionAsk", description: "A call that waits for a person." });

const failure = z.object({ code: z.string(), message: z.string() });
const live = z.object({
  text: z.string(),
  reasoning: z.string(),
  calls: z.array(z.object({ id: z.string(), name: z.string(), input: z.string() })),
});
export const mode = z.enum(["ask", "accept edits", "plan"]);

/** `ChatState` without its items, which `GET …/transcript` gives in ranges. */
export const chatState = z
  .object({
    id: sessionId,
    title: z.string(),
    cwd: z.string(),
    model: z.string(),
    status: z.enum(["idle", "running", "waiting", "interrupted"]),
    isBusy: z
      .boolean()
      .describe("Something is under way, or follows by itself: a turn, the next queued prompt, a compaction."),
    account,
    mode,
    count: z.int().describe("How many items the transcript has."),
    live: live.nullable().describe("What is being streamed and is not recorded as a message yet."),
    outputs: z.record(z.string(), z.string()).describe("The end of each running tool's output, by call."),
    asks: z.array(ask),
    queue: z.array(queued),
    interruption: interruption.nullable(),
    usage: usage.describe("With sub-agents."),
    window: z.object({ usedTokens: z.number(), maxTokens: z.number() }),
    failure: failure.nullable(),
    damage: z.array(z.string()),
    canUndo: z.boolean(),
    isCompacting: z.boolean(),
  })
  .meta({ id: "ChatState", description: "A session that this server has open." });

export const session = z
  .object({
    id: sessionId,
    title: z.string(),
    cwd: z.string().optional(),
    app: z.string().optional(),
    dialect: z.string(),
    labels: z.record(z.string(), z.string()),
    parent: link.optional(),
    forkedFrom: z.object({ session: z.string(), at: z.string() }).optional(),
    status,
    cursor: cursor.nullable(),
    count: z.int().describe("How many items the transcript has."),
    here: z.boolean().describe("This server has it open: `state` is there."),
    holder: holder.nullable(),
    account,
    state: chatState.nullable(),
    interruption: interruption.nullable(),
    queue: z.array(queued),
    usage: usage.describe("Without sub-agents."),
    damage: z.array(z.string()).describe("What is wrong with the journal, in words."),
    finishAfterRestart: z.boolean(),
  })
  .meta({ id: "Session" });

export const unfinished = z
  .object({
    id: sessionId,
    title: z.string(),
    cwd: z.string(),
    account,
    at: time,
    queue: z.array(z.string()),
    interruption: interruption.nullable(),
  })
  .meta({ id: "UnfinishedSession" });

const recoveryMembers = {
  unclean: z.boolean(),
  cutBytes: z.int(),
  quarantine: z.string().optional(),
  damaged: z.array(
    z.object({
      segment: z.string(),
      offset: z.int(),
      bytes: z.int(),
      seq: z.int().optional(),
      why: z.enum(["corrupt", "foreign"]),
    }),
  ),
  missing: z.array(z.object({ from: z.int(), to: z.int() })),
};

export const recovery = z.object(recoveryMembers).meta({ id: "Recovery" });
export const damage = z
  .object({
    ...recoveryMembers,
    id: sessionId,
    records: z.int(),
    bytes: z.int(),
    segments: z.int(),
    beingWritten: z.boolean(),
  })
  .meta({ id: "Damage", description: "The result of checking the whole journal byte by byte." });

export const share = z
  .object({
    id: z.string(),
    session: sessionId,
    createdAt: time,
    expiresAt: time.nullable(),
    redact: z.literal(true).optional().describe("Credentials in what it shows are replaced."),
    token: z.string().optional().describe("Only in the answer that creates it: it is not kept."),
  })
  .meta({ id: "Share", description: "A read-only token for one session." });

export { item };
