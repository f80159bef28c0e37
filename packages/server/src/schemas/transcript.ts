import { z } from "zod";

/** A session as people read it: the items of `contract/item.ts`, in the form of schemas. */

const time = z.iso.datetime().describe("When it was recorded.");

const shownFile = z
  .object({
    mediaType: z.string(),
    name: z.string().optional(),
    data: z.string().optional().describe("Base64, without the prefix of a data URL."),
    url: z.string().optional(),
    bytes: z.number().optional(),
  })
  .meta({ id: "ShownFile", description: "A file in a message: its content, or where it is, or neither." });

const common = {
  id: z.string().describe("The entry's id, with a number for each part if there are several."),
  at: time,
  turn: z.int(),
  aside: z.string().optional().describe("Why the model does not see it."),
  metadata: z.record(z.string(), z.unknown()).optional(),
};

const promptItem = z
  .object({ kind: z.literal("prompt"), ...common, text: z.string(), files: z.array(shownFile).optional() })
  .meta({ id: "PromptItem" });

const answerItem = z
  .object({
    kind: z.enum(["answer", "reasoning"]),
    ...common,
    text: z.string(),
    files: z.array(shownFile).optional(),
    model: z.string().optional(),
    incomplete: z.literal(true).optional().describe("The stream was cut off here."),
  })
  .meta({ id: "AnswerItem", description: "An answer or a thought of the model." });

const callItem = z
  .object({
    kind: z.literal("call"),
    ...common,
    call: z.string(),
    name: z.string(),
    input: z.unknown(),
    state: z.enum(["open", "waiting", "running", "done", "failed", "denied", "unknown", "not-run"]),
    output: z.string().optional().describe("What the model sees of the result."),
    files: z.array(shownFile).optional(),
    by: z.literal("provider").optional(),
    child: z.string().optional().describe("The session of a sub-agent."),
  })
  .meta({ id: "CallItem", description: "A tool call and its outcome." });

const noteItem = z
  .object({ kind: z.literal("note"), ...common, text: z.string() })
  .meta({ id: "NoteItem", description: "Said by neither a person nor the model." });

export const item = z.union([promptItem, answerItem, callItem, noteItem]).meta({ id: "Item" });

export const cursor = z
  .string()
  .regex(/^\d+-[0-9a-f]+$/)
  .describe("A place in the journal: `seq-crc` of a record.");

export const transcript = z
  .object({
    cursor: cursor.nullable().describe("A record that these items show. Follow the events after it."),
    version: z
      .string()
      .nullable()
      .describe("Which `state` events these items show already; null while the server does not have it open."),
    count: z.int().describe("How many items there are."),
    found: z.int().nullable().describe("The index of what `around` or `near` asked for; null if it is not there."),
    from: z.int().describe("The index of the first item here."),
    items: z.array(item),
  })
  .meta({ id: "Transcript", description: "A range of the items of the current conversation, oldest first." });

export const usage = z
  .object({
    inputTokens: z.number().optional(),
    outputTokens: z.number().optional(),
    cacheReadTokens: z.number().optional(),
    cacheWriteTokens: z.number().optional(),
    reasoningTokens: z.number().optional(),
    cost: z.object({ amount: z.number(), currency: z.string() }).optional(),
    otherCosts: z.array(z.object({ amount: z.number(), currency: z.string() })).optional(),
  })
  .meta({ id: "Usage" });

const span = {
  turn: z.int(),
  from: time,
  to: time.nullable().describe("Null: it has no recorded end."),
  seq: z.int().describe("The record that it starts with."),
  count: z
    .int()
    .optional()
    .describe("Stands for this many that are too short to tell apart. The rest describes the gravest of them."),
};

export const timelineEntry = z
  .union([
    z.object({
      kind: z.literal("turn"),
      ...span,
      prompt: z.string().describe("The start of the prompt."),
      outcome: z
        .enum(["completed", "aborted", "failed", "left", "waiting", "running", "interrupted"])
        .describe("`interrupted`: the process died or was closed, and nobody has resumed the turn."),
      by: z.string().optional(),
      error: z.string().optional(),
    }),
    z.object({
      kind: z.literal("model"),
      ...span,
      model: z.string().optional(),
      message: z.string().nullable().describe("The answer's id; null if none was recorded."),
      first: time.optional().describe("When the first word came, if the answer was streamed."),
    }),
    z.object({
      kind: z.literal("tool"),
      ...span,
      call: z.string(),
      name: z.string(),
      about: z.string().optional().describe("What it works on, shortened: a path, a command, a pattern."),
      outcome: z
        .enum(["done", "failed", "unknown", "running", "not-run"])
        .describe("`not-run`: it had not started when the turn was cut off; it starts where the call was recorded."),
      child: z.string().optional(),
      steps: z
        .array(
          z.object({
            name: z.string(),
            from: time,
            to: time.nullable().describe("Null: it has no recorded end."),
            outcome: z.enum(["done", "failed", "unknown", "running"]),
            settled: z
              .string()
              .optional()
              .describe("Where the outcome is known from, in words, if not from the step itself."),
          }),
        )
        .optional()
        .describe("The steps of this run of the tool, in the order in which they started. At most 50."),
      moreSteps: z.int().optional().describe("How many steps are not among `steps`."),
      unusedSteps: z
        .string()
        .optional()
        .describe("The steps of earlier runs that this run, which returned, did not ask for, in words."),
    }),
    z.object({
      kind: z.literal("wait"),
      ...span,
      reason: z.string().describe("What the turn waited for, such as `permission`."),
    }),
    z.object({
      kind: z.literal("mark"),
      mark: z
        .enum(["opened", "closed", "died", "signal", "stopped", "not-run", "resumed", "replaced", "repaired"])
        .describe(
          "`died`: the writer ended without closing the session; `at` is its last record. `not-run`: calls had not started when the turn was cut off.",
        ),
      at: time,
      seq: z.int(),
      count: z.int().optional().describe("Stands for this many of its kind, close together. The first is shown."),
      turn: z.int().nullable(),
      words: z.string().describe("What happened, for people."),
    }),
  ])
  .meta({ id: "TimelineEntry" });

export type TimelineEntry = z.infer<typeof timelineEntry>;

export const timeline = z
  .object({
    cursor: cursor.nullable(),
    from: time.nullable().describe("When the session begins."),
    to: time.nullable().describe("Its last record."),
    turns: z.int().describe("How many turns there are in the whole session."),
    lanes: z.int().describe("How many tools ran at the same time, at most."),
    isMerged: z
      .boolean()
      .describe("Neighbours were merged, or steps left out. Ask for a shorter window to see each of them."),
    entries: z.array(timelineEntry).describe("In the order in which they started."),
  })
  .meta({
    id: "Timeline",
    description: "What happened when, over all epochs of the session. At most 200 KB, whatever the session's size.",
  });

export const epochs = z
  .object({
    epochs: z.array(
      z
        .object({
          until: z.int().describe("Its last record: the `until` of its transcript."),
          from: time,
          to: time.describe("When it was replaced."),
          reason: z.string().describe("`compaction`, `clear`, `rewind` or `import`."),
          messages: z.int(),
        })
        .meta({ id: "Epoch" }),
    ),
  })
  .meta({ id: "Epochs", description: "The conversations before the current one, oldest first." });

export const changes = z
  .object({
    files: z.array(
      z.object({
        path: z.string(),
        changes: z.array(
          z.object({
            item: z.string(),
            call: z.string(),
            at: time,
            turn: z.int(),
            state: z.string().describe("The state of the call: only `done` is known to have changed the file."),
            rows: z.array(z.object({ kind: z.enum(["same", "added", "removed", "gap"]), text: z.string() })),
          }),
        ),
      }),
    ),
  })
  .meta({ id: "Changes", description: "The files that calls of the current conversation change, with diffs." });

export const usageReport = z
  .object({
    total: usage,
    turns: z.array(z.object({ turn: z.int(), at: time, usage })),
    models: z.array(z.object({ model: z.string(), usage })),
    days: z.array(z.object({ day: z.iso.date().describe("In UTC."), usage })),
  })
  .meta({ id: "UsageReport", description: "What the session used, without sub-agents, over all its epochs." });

export interface TreeNode {
  session: string;
  title: string;
  status: string;
  call?: string | undefined;
  children: TreeNode[];
}

export const treeNode: z.ZodType<TreeNode> = z
  .object({
    session: z.string(),
    title: z.string(),
    status: z.string(),
    call: z.string().optional().describe("The call of the parent that started it."),
    get children() {
      return z.array(treeNode);
    },
  })
  .meta({ id: "TreeNode", description: "A session and the sub-agents below it." });

export const tree = z
  .object({
    tree: treeNode,
    forkedFrom: z
      .object({ session: z.string(), at: z.string(), title: z.string().nullable() })
      .nullable()
      .describe("`title` is null if that session cannot be read."),
  })
  .meta({ id: "Tree" });
