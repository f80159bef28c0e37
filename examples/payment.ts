// A payment that is charged once, however often and wherever the agent is killed.
// Start it, `kill -9` it while it pays, and start it again: node --conditions=holdfast-source examples/payment.ts
import { setTimeout as sleep } from "node:timers/promises";
import { guard, openStore, type Probe } from "holdfast";
import { blocksOf, callsIn, type Message } from "./model.ts";
import { type Charge, paymentService } from "./payment-service.ts";

// The service runs elsewhere, and knows idempotency keys, or does not. Without an address: one of our own, with keys.
const { SERVICE_ADDRESS, SERVICE_WITHOUT_KEYS, REQUEST_MS = "2000" } = process.env;
const slowly = { ledger: "./charges.jsonl", at: announce } as const;
const service = SERVICE_ADDRESS ?? (await paymentService(slowly)).address;

async function announce(point: string): Promise<void> {
  if (point !== "charged") return;
  console.log(`  it is charged, and nobody knows yet (kill -9 ${process.pid} now, and start me again)`);
  await sleep(5000);
}

interface Invoice {
  readonly order: string;
  readonly cents: number;
}

async function pay(invoice: Invoice, key: string, signal: AbortSignal): Promise<Charge> {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const body = JSON.stringify(invoice);
  const response = await fetch(`${service}/charges`, { method: "POST", headers, body, signal });
  return (await response.json()) as Charge;
}

async function find(question: string, signal: AbortSignal): Promise<Charge | null> {
  const response = await fetch(`${service}/charges?${question}`, { signal });
  return (await response.json()) as Charge | null;
}

// With keys: what is not there yet may be sent again. Should the first request still arrive, it has the same key.
const byKey: Probe<Charge> = async ({ key, signal }) => {
  const charge = await find(`key=${key}`, signal);
  return charge ? { value: charge } : "did-not-happen";
};

// Without keys: "did not happen" is true only when the first request can no longer arrive. So it is waited for first.
const byOrder: Probe<Charge> = async ({ input, startedAt, signal }) => {
  const arrivesUntil = Date.parse(startedAt) + Number(REQUEST_MS);
  await sleep(Math.max(0, arrivesUntil - Date.now()), undefined, { signal });
  const charge = await find(`order=${(input as Invoice).order}`, signal);
  return charge ? { value: charge } : "did-not-happen";
};

const probe = SERVICE_WITHOUT_KEYS ? byOrder : byKey;

// A stand-in for the model: it pays one invoice, and believes what it is told of the payment.
function reply(messages: readonly Message[]): Message {
  const result = blocksOf(messages.at(-1)).findLast(({ type }) => type === "tool_result")?.content ?? "";
  const receipt = /R-\d+/.exec(result)?.[0];
  const isFree = result.includes("safe to run");
  const input: Invoice = { order: "invoice-7", cents: 4200 };
  const call = { type: "tool_use", id: `pay_${messages.length}`, name: "pay", input };
  if (result === "" || isFree) return { role: "assistant", content: [{ type: "text", text: "I pay it." }, call] };
  const text = receipt ? `Paid: ${receipt}.` : "I do not know whether it was paid: please check.";
  return { role: "assistant", content: [{ type: "text", text }] };
}

const store = await openStore("./agent-data", { app: "payment", recordsToolStarts: true });
const session =
  (await store.resumeLatest<Message>({ cwd: ".", app: "payment" })) ??
  (await store.create<Message>({ dialect: "anthropic", cwd: "." }));
guard(session);

const found = session.interruption;
for (const { name, state } of found?.calls ?? []) console.log(`found: ${name}, ${state}`);
// "rerun" leaves open what never started, and what a probe can be asked about. Of the rest, the model is told.
const isOver = found?.answered ?? session.entries.length > 0;
if (!isOver) {
  const prompt: Message = { role: "user", content: "Pay invoice 7: 42 euros." };
  const turn = found ? await session.resumeTurn({ calls: "rerun" }) : await session.startTurn(prompt);
  const run = async (id: string, invoice: Invoice): Promise<void> => {
    // The start is on disk, with the key, before `pay` is called. If an earlier process started the call, `probe` is
    // asked first: what it finds is recorded, and `pay` runs only if nothing was charged.
    const { error } = await turn.tool(id, (signal, { key }) => pay(invoice, key, signal), { probe });
    if (error !== undefined) console.log(`pay: ${String(error)}`);
  };
  for (const { id, input } of turn.open) await run(id, input as Invoice);
  for (;;) {
    const { messages, draft } = turn.request();
    const answer = reply(messages);
    const calls = callsIn(answer);
    await draft.commit(answer, { end: calls.length === 0 });
    console.log(`model: ${blocksOf(answer)[0]?.text}`);
    if (calls.length === 0) break;
    for (const { id } of calls) await run(id, blocksOf(answer).find((one) => one.id === id)?.input as Invoice);
  }
}
await store.close();
console.log("done");
