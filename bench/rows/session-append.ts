import { newId } from "holdfast";
import { type Durability, openFolderStore } from "holdfast/store";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { interleave } from "../interleave.ts";
import { type Entry, makeConversation } from "../messages.ts";
import { eachTurn, sessionStore } from "../sessions.ts";
import { quantile } from "../statistics.ts";
import { p50Note } from "./append.ts";

interface Plan {
  readonly rounds: number;
  readonly perRound: number;
}

/**
 * `turn.append` against an append of the same record to a journal that no session stands before: what checking,
 * encoding and folding a message cost. Calls, results and answers in turns of ten; starts and ends of turns are not
 * timed. Beside the sync of `power`, which is the default, little of this can be seen; under `process` it is most of
 * what is there.
 */
export async function sessionAppendRow(bench: Bench, { figures }: Results): Promise<void> {
  for (const durability of ["power", "process"] as const) {
    const plan =
      durability === "power"
        ? { rounds: bench.size(7, 3), perRound: bench.size(900, 300) }
        : { rounds: bench.size(15, 7), perRound: bench.size(6000, 3000) };
    figures.push({
      row: "session-append",
      what: `turn.append, ${durability}, against the journal's own, p50`,
      bound: { atMost: 1.4 },
      unit: "×",
      ...(await compare(bench, durability, plan)),
    });
  }
}

async function compare(
  bench: Bench,
  durability: Durability,
  plan: Plan,
): Promise<{ readonly rounds: number[]; readonly note: string }> {
  const entries = makeConversation(3000, "anthropic").map((entry) => {
    const { id, turn, message } = entry.record;
    return { ...entry, record: { kind: "message", id, turn, step: id, message } as Entry["record"] };
  });
  const root = bench.path("session");
  await using sessions = await sessionStore(root, durability);
  await using journals = await openFolderStore(bench.path("journal"), { durability });
  const ratios: number[] = [];
  const p50Us: [number[], number[]] = [[], []];
  // The first round warms both up. Each has new sessions: a context does not grow without end.
  for (let round = -1; round < plan.rounds; round++) {
    await using session = await sessions.create<unknown>({ dialect: "anthropic" });
    await using journal = await journals.create(newId(), []);
    const own = (entry: Entry) => journal.append(entry.record);
    const times: [number[], number[]] = [[], []];
    const messages = Array.from({ length: plan.perRound }, (_, i) => entries[i % entries.length]!);
    await eachTurn(session, messages, async (turn, rest) => {
      const both = await interleave(
        [{ awaited: (entry) => turn.append(entry.message) }, { awaited: own }],
        rest,
        0,
        rest.length,
      );
      for (const which of [0, 1] as const) times[which].push(...both[which]);
    });
    if (session.entries.length !== plan.perRound) throw new Error(`${session.entries.length} messages were folded`);
    if (round < 0) continue;
    for (const which of [0, 1] as const) p50Us[which].push(quantile(times[which], 0.5));
    ratios.push(p50Us[0].at(-1)! / p50Us[1].at(-1)!);
  }
  return { rounds: ratios, note: p50Note(p50Us) };
}
