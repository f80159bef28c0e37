import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ModelMessage } from "ai";
import { openStore, type Session } from "holdfast";
import { Clock } from "./clock.ts";

/**
 * Records a tool whose process dies in a step, and that continues in another process: `node steps-story.ts <folder>
 * <part>`.
 */

const [folder, part] = process.argv.slice(2) as [string, string];
const work = join(folder, "work");
const clock = new Clock("2026-11-12T09:04:10.000Z");
mkdirSync(work, { recursive: true });
const store = await openStore(join(folder, "store"), { app: "holdfast", recordsToolStarts: true });

/** What a step does takes this long. */
const takes = (ms: number, error?: string) => (): string => {
  clock.pass(ms);
  if (error !== undefined) throw new Error(error);
  return "done";
};

if (part === "killed") {
  const session = (await store.create({ dialect: "ai-sdk", title: "Ship order 7", cwd: work })) as unknown;
  const turn = await (session as Session<ModelMessage>).startTurn({ role: "user", content: "Ship order 7." });
  clock.pass(2000);
  const call = { type: "tool-call", toolCallId: "call_7", toolName: "ship", input: { path: "orders/7.json" } } as const;
  await turn.append({ role: "assistant", content: [call] });
  await turn.tool(
    "call_7",
    async (_, { step }) => {
      await step("reserve", takes(2500));
      await step("wrap", takes(1500));
      await step("charge", async () => {
        clock.pass(3000);
        // The last sign of life.
        await turn.usage({ inputTokens: 900, outputTokens: 40 });
        process.kill(process.pid, "SIGKILL");
        await new Promise(() => undefined);
      });
    },
    { replay: "safe" },
  );
} else {
  clock.goTo("2026-11-12T09:04:24.000Z");
  const { sessions } = await store.list();
  const session = (await store.resume(sessions[0]!.id)) as unknown as Session<ModelMessage>;
  const turn = await session.resumeTurn({ calls: "rerun" });
  clock.pass(1000);
  await turn.tool(
    "call_7",
    async (_, { step }) => {
      clock.pass(1500);
      await step("reserve", takes(1));
      await step("charge", takes(1), { probe: () => ({ value: "paid" }) });
      clock.pass(500);
      await step("label", takes(1500, "the printer is off")).catch(() => null);
      await step("mail", takes(2500));
    },
    { replay: "safe" },
  );
  clock.pass(1500);
  await turn.append({ role: "assistant", content: "Order 7 is on its way." });
  await turn.end();
  await session.close();
  await store.close();
}
