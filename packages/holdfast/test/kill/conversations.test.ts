import {
  type AgentProgram,
  type ConversationEnding,
  type Flaw,
  runConversations,
  warmAgent,
} from "@holdfast/testkit/internal/conversations";
import { temporaryPlace } from "@holdfast/testkit/internal/kill";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../seed.ts";

const seed = seedOf(import.meta.url, "kill");
/** Agents wait for their models and tools most of the time: there may be more of them than processors. */
const LANES = 4;

describe("random conversations, SIGKILL at random instants, resumed, and killed again", () => {
  test.each([
    { store: "folder", durability: "power", kills: 26 },
    { store: "sqlite", durability: "process", kills: 18 },
  ] as const)(
    "P1, P3, P4, P5, C35: nothing acknowledged is lost, no tool runs twice, every request is accepted: $store, $kills kills",
    async ({ store, durability, kills }) => {
      using place = temporaryPlace();
      const receipt = await runConversations({ store, durability, place: place.path, seed, kills, lanes: LANES });
      expect(receipt.faults).toEqual([]);
      expect(receipt.kills).toBeGreaterThanOrEqual(kills);
      // A campaign that asked no model and ran no tool would prove nothing.
      expect(receipt.requests).toBeGreaterThan(kills);
      expect(receipt.effects).toBeGreaterThan(kills / 2);
      expect(receipt.acknowledged.get("resume")).toBeGreaterThan(0);
    },
  );
});

describe("the oracle is not blind: agents that do what must not be done", () => {
  const cache = temporaryPlace();
  let agent: AgentProgram;
  beforeAll(async () => {
    agent = await warmAgent(cache.path);
  });
  afterAll(() => cache[Symbol.dispose]());

  type Kind = Extract<ConversationEnding, { by: "event" }>;
  const at = (e: Kind["e"], nth = 1): ConversationEnding => ({ by: "event", e, nth, us: 500 });
  const call = (op: NonNullable<Kind["op"]>, us = 500): ConversationEnding => ({
    by: "event",
    e: "try",
    op,
    nth: 1,
    us,
  });
  const often = (ending: ConversationEnding): ConversationEnding[] => Array.from({ length: 8 }, () => ending);
  /** By a fixed seed: what is shown is that the oracle sees it, not how often chance brings it about. */
  const caught: { flaw: Flaw; lives: ConversationEnding[]; as: string }[] = [
    { flaw: "acknowledges-early", lives: [call("start", 50_000)], as: "lost" },
    { flaw: "runs-before-start", lives: [at("effect")], as: "unrecorded start" },
    { flaw: "results-at-the-end", lives: [call("toolEnded", 50_000)], as: "lost" },
    { flaw: "runs-again", lives: often(at("effect")), as: "ran twice" },
    { flaw: "keeps-its-words", lives: [at("beat", 30)], as: "words" },
    { flaw: "mixes-attempts", lives: often(call("discard", 100_000)), as: "words" },
    { flaw: "delivers-twice", lives: often(at("idle")), as: "queue" },
    { flaw: "sends-entries", lives: often(at("effect", 3)), as: "refused" },
    { flaw: "forgets-metadata", lives: [call("end")], as: "metadata" },
  ];

  test.concurrent.each(caught)("$flaw: $as", async ({ flaw, lives, as }) => {
    using place = temporaryPlace();
    const options = { store: "folder", place: place.path, seed: 7, kills: 99, only: 0, agent } as const;
    const receipt = await runConversations({ ...options, flaw, lives });
    expect(receipt.faults.map(({ what }) => what)).toContain(as);
  });
});
