import type { Entry } from "holdfast";
import { marksIn } from "./events.ts";
import { type Stage, typed, type Work } from "./stage.ts";
import { steer } from "./tools.ts";
import type { Message } from "./voices.ts";

/** Other things an application does to a session, between two requests or two turns. */
export async function extras(stage: Stage, work: Work | null): Promise<void> {
  const { random } = stage;
  if (random.chance(0.3)) await patch(stage);
  if (random.chance(0.2)) await note(stage);
  if (random.chance(0.25)) await queue(stage, work);
  if (work && random.chance(0.15)) await usage(stage, work);
  if (random.chance(work ? 0.06 : 0.12)) await replace(stage, work);
  if (random.chance(0.06)) await edit(stage);
  if (random.chance(0.05)) await rename(stage);
}

async function patch({ session, random, recorder, job }: Stage): Promise<void> {
  if (session.entries.length === 0) return;
  const { id } = random.pick(session.entries.slice(-8));
  const hides = random.chance(0.06);
  const key = `k${random.below(4)}`;
  const value = recorder.mark("m");
  const metadata = { [key]: value, ...(hides ? { hiddenFromModel: true } : {}) };
  const forget = job.flaw === "forgets-metadata";
  await recorder.maybe({ do: "patch", id, key, value, hides }, async () => forget || session.patch(id, metadata));
}

let count = 0;
async function note({ session, random, recorder, job }: Stage): Promise<void> {
  const name = `n${random.below(3)}`;
  // Grows over all lives.
  const value = job.life * 10_000 + count++;
  await recorder.try({ do: "note", name, value }, () => session.note(name, value));
}

async function rename({ session, recorder }: Stage): Promise<void> {
  const title = recorder.mark("n");
  await recorder.try({ do: "rename", title }, () => session.rename(title));
}

async function usage({ random, recorder }: Stage, { turn }: Work): Promise<void> {
  const tokens = 1 + random.below(1000);
  await recorder.try({ do: "usage", tokens }, () => turn.usage({ inputTokens: tokens }));
}

async function queue(stage: Stage, work: Work | null): Promise<void> {
  const { session, random, recorder } = stage;
  const last = session.queue.at(-1);
  if (last && random.chance(0.15)) {
    await recorder.maybe({ do: "dequeue", id: last.id }, () => session.dequeue(last.id));
  } else if (work) await steer(stage, work);
  else {
    const message = typed(stage, "q");
    const id = recorder.serial();
    await recorder.try({ do: "enqueue", id, message }, () => session.enqueue(message, { id }));
  }
}

/** Compaction at any time; clear and rewind between turns; undo. */
async function replace(stage: Stage, work: Work | null): Promise<void> {
  const { session, random, recorder } = stage;
  const { entries } = session;
  const before = entries.map(({ id }) => id);
  const cut = random.below(entries.length + 1);
  const reason = work || random.chance(0.5) ? "compaction" : random.chance(0.2) ? "clear" : "rewind";
  const items: (Message | Entry<Message>)[] =
    reason === "compaction"
      ? [typed(stage, "u"), ...entries.slice(cut)]
      : reason === "clear"
        ? []
        : entries.slice(0, cut);
  const told = items.map((item) => (isEntry(item) ? item.id : item));
  const op = { do: "replace", items: told, reason } as const;
  const isDone = await recorder.maybe(op, () => session.replace(items, { reason }));
  if (isDone && random.chance(0.4)) {
    if (random.chance(0.5)) await note(stage);
    await recorder.maybe({ do: "undo", before }, () => session.undo());
  }
}

function isEntry(item: Message | Entry<Message>): item is Entry<Message> {
  return "seq" in item && "step" in item;
}

/** Shortens a prompt, or replaces a response and its results with a sentence. */
async function edit(stage: Stage): Promise<void> {
  const { session, random, recorder, voice } = stage;
  const { entries } = session;
  if (entries.length === 0) return;
  const first = random.below(entries.length);
  const entry = entries[first]!;
  if (entry.replacedBy !== undefined) return;
  const isTyped = marksIn(entry.message).some((mark) => "psq".includes(mark[1]!));
  let end = first + 1;
  // The step, and its results.
  if (!isTyped) while (end < entries.length && (entries[end]!.step === entry.step || isResult(entries[end]!))) end++;
  const ids = entries.slice(first, end).map(({ id }) => id);
  const mark = `${recorder.mark("e")} shortened`;
  const shown = [isTyped ? voice.user(mark) : voice.said(recorder.serial(), mark)];
  await recorder.maybe({ do: "edit", ids, shown }, () => session.edit(ids, shown, { reason: "shortened" }));
}

function isResult({ message, synthetic }: Entry<Message>): boolean {
  return synthetic !== undefined || marksIn(message).some((mark) => mark[1] === "r");
}
