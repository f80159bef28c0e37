import { mkdtempSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { openStore } from "holdfast";
import { type Durability, openJournalStore } from "holdfast/store";
import { stepsOf } from "../kill/points.ts";
import type { Op } from "./events.ts";
import type { Flaw } from "./job.ts";
import { type AgentProgram, warmAgent } from "./life.ts";
import type { ConversationFault } from "./oracle.ts";
import { type Ending, planConversation } from "./plan.ts";
import { ConversationTrial, type TrialPlace } from "./trial.ts";

export interface ConversationCampaign {
  readonly store: "folder" | "sqlite";
  /** An existing folder. */
  readonly place: string;
  readonly seed: number;
  /** The minimum number of kills. */
  readonly kills: number;
  readonly durability?: Durability;
  /** How many conversations to test at the same time. Default: one per processor. */
  readonly lanes?: number;
  /** Run only the conversation with this number, as a fault names it. */
  readonly only?: number;
  /** How to start agents. Default: `warmAgent`. */
  readonly agent?: AgentProgram;
  /** To show that the oracle detects faults. */
  readonly flaw?: Flaw;
  /** Used instead of the plans from the seed. */
  readonly lives?: readonly Ending[];
  readonly onKill?: (receipt: ConversationReceipt) => void;
  readonly signal?: AbortSignal;
}

/** The totals of a campaign. */
export interface ConversationReceipt {
  kills: number;
  conversations: number;
  /** Requests to a model; all of them were checked. */
  requests: number;
  effects: number;
  /** Acknowledged library calls, by name, */
  readonly acknowledged: Map<Op["do"], number>;
  /** and calls that a death left unanswered. */
  readonly cutOff: Map<Op["do"], number>;
  readonly faults: (ConversationFault & { readonly index: number; readonly session: string | null })[];
}

const FAULTS_MAX = 20;

/** Kills agents in mid-conversation at least `kills` times, and reports what came back. */
export async function runConversations(options: ConversationCampaign): Promise<ConversationReceipt> {
  const receipt: ConversationReceipt = {
    kills: 0,
    conversations: 0,
    requests: 0,
    effects: 0,
    acknowledged: new Map(),
    cutOff: new Map(),
    faults: [],
  };
  const address =
    options.store === "sqlite" ? `sqlite:${join(options.place, "store.sqlite")}` : join(options.place, "store");
  const { durability = "power" } = options;
  const agent = options.agent ?? (await warmAgent(options.place));
  const place: TrialPlace = {
    address,
    durability,
    look: async (work) => {
      await using store = await openStore(address);
      await using journals = await openJournalStore(address);
      return await work(store, journals);
    },
    folder: mkdtempSync(join(options.place, "effects-")),
  };
  let next = options.only ?? 0;
  const goesOn = (): boolean =>
    !options.signal?.aborted && receipt.kills < options.kills && receipt.faults.length < FAULTS_MAX;
  const lane = async (): Promise<void> => {
    while (goesOn() && (options.only === undefined || next <= options.only))
      await runOne(options, place, agent, next++, receipt, goesOn);
  };
  // One process uses an SQLite file at a time.
  const lanes = options.store === "sqlite" ? 1 : (options.lanes ?? availableParallelism());
  await Promise.all(Array.from({ length: lanes }, lane));
  return receipt;
}

async function runOne(
  options: ConversationCampaign,
  place: TrialPlace,
  agent: AgentProgram,
  index: number,
  receipt: ConversationReceipt,
  goesOn: () => boolean,
): Promise<void> {
  const plan = planConversation(options.seed, index, stepsOf(options.store).points);
  const trial = new ConversationTrial(place, agent, plan, String(index), options.flaw);
  for (const ending of options.lives ?? plan.lives) {
    const before = trial.kills;
    await trial.run(ending);
    receipt.kills += trial.kills - before;
    options.onKill?.(receipt);
    if (!goesOn() || trial.faults.length > 0) break;
  }
  receipt.conversations++;
  receipt.requests += trial.log.saidOf("asked").length;
  receipt.effects += trial.log.saidOf("effect").length;
  for (const { op, answer } of trial.log.tried) {
    const counts = answer === "ok" ? receipt.acknowledged : receipt.cutOff;
    if (answer !== "no") counts.set(op.do, (counts.get(op.do) ?? 0) + 1);
  }
  for (const fault of trial.faults) receipt.faults.push({ ...fault, index, session: trial.session });
}
