import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { type Random, seededRandom } from "../../../testkit/src/simulation/random.ts";
import { HoldfastClient, ServerError } from "../../src/client/index.ts";
import type { TextEvent } from "../../src/schemas/events.ts";
import { type Cut, CuttingProxy } from "../cutting-proxy.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

const CLIENTS = 20;
const CUTS = 1000;

test("C13: a thousand cuts at random bytes, and half-open connections: every client ends with the same sequence", async () => {
  const random = seededRandom(seedOf(import.meta.url, "end-to-end"));
  await using stage = await ServerStage.start({
    config: { offlineDelayMs: 1 },
    allowed: { hosts: ["127.0.0.1"] },
  });
  let isCutting = true;
  const next = (): Cut | null => {
    if (!isCutting) return null;
    const how = random.chance(0.1) ? "silent" : random.pick(["reset", "end"] as const);
    return { afterBytes: Math.floor(random.next() ** 2 * 12_000), how };
  };
  await using proxy = await CuttingProxy.start(stage.server.port, next);
  const client = new HoldfastClient({ url: proxy.url, token: stage.token });
  const id = await stage.session();
  const ending = new AbortController();
  const followers = Array.from({ length: CLIENTS }, () => follow(client, id, ending.signal, random));
  const chat = await stage.host.open(id);
  for (let turn = 1; proxy.cuts < CUTS; turn++) {
    await chat.prompt(`${turn}. tell me a story of 20 lines`);
    while (chat.state.status !== "idle") await chat.settled();
  }
  isCutting = false;
  proxy.cutAll();
  await stage.client.call("closeSession", { params: { id } });
  const journal = await Array.fromAsync(stage.host.sessions.history(id));
  const expected = journal.map(({ seq, crc }) => `${seq}-${crc}`);
  for (const { records, texts } of followers) {
    await expect.poll(() => records.length, PATIENT).toBeGreaterThanOrEqual(expected.length);
    expect(records).toEqual(expected);
    // What a client has of an answer has no hole and nothing twice: `follow` checks each position.
    expect(texts.wrong).toEqual([]);
  }
  expect(proxy.cuts).toBeGreaterThanOrEqual(CUTS);
  ending.abort();
});

interface ReceivedEvents {
  readonly records: string[];
  readonly texts: { readonly wrong: string[] };
}

function follow(client: HoldfastClient, id: string, signal: AbortSignal, random: Random): ReceivedEvents {
  const seen: ReceivedEvents = { records: [], texts: { wrong: [] } };
  const lengths = new Map<string, number>();
  void (async () => {
    let after = "start";
    while (!signal.aborted) {
      // A client behind a half-open connection gives up at some point.
      const patience = AbortSignal.any([signal, AbortSignal.timeout(500 + random.below(1000))]);
      try {
        for await (const { name, data, lastId } of client.events(id, { after, signal: patience })) {
          after = lastId || "start";
          if (name === "record") seen.records.push(lastId.replace(/~.*/, ""));
          if (name === "start-over") seen.texts.wrong.push("start over");
          if (name !== "text") continue;
          const { answer, at, text } = JSON.parse(data) as TextEvent;
          if (at !== (lengths.get(answer) ?? 0)) seen.texts.wrong.push(`${answer}: ${at}`);
          lengths.set(answer, at + text.length);
        }
      } catch (error) {
        if (!(error instanceof ServerError)) throw error;
      }
      await sleep(5);
    }
  })();
  return seen;
}
