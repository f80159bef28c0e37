import { join } from "node:path";
import { rolldown } from "rolldown";
import { startAgent } from "../agent-process.ts";
import type { System } from "../system.ts";

export const cloudflare: System = {
  key: "cloudflare",
  name: "Cloudflare Agents SDK",
  packages: {
    agents: "0.32.0",
    miniflare: "4.20260730.0",
    ai: "7.0.169",
    zod: "4.6.7",
  },
  driven:
    "a Durable Object in workerd, under miniflare; workerd and miniflare are killed and started again with the same storage",
  variants: [
    { key: "think", words: "`ThinkHarness`" },
    { key: "think-rerun", words: '`ThinkHarness`, the tool with `recovery: "rerun"`' },
    { key: "think-rerun-key", words: "the same, with the call's id as the key" },
    { key: "task", words: "a loop in a Task, no key" },
    { key: "task-key", words: "a loop in a Task, with `idempotencyKey`" },
    { key: "task-interrupted", words: "a loop in a Task, which asks the service if `step.interrupted` names the call" },
  ],
  begin: async ({ folder, variant, url }) => {
    const build = await rolldown({
      input: join(folder, "cloudflare-worker.mjs"),
      cwd: folder,
      platform: "neutral",
      external: [/^cloudflare:/, /^node:/],
      resolve: { conditionNames: ["workerd", "worker", "browser", "import"], mainFields: ["module", "main"] },
      logLevel: "silent",
    });
    await build.write({ file: join(folder, "worker.mjs"), format: "esm", codeSplitting: false });
    await build.close();
    return {
      start: (again) => {
        const args = [folder, variant, again ? "again" : "first"];
        return startAgent(join(folder, "cloudflare-serve.mjs"), args, { PAYMENT_URL: url }, folder);
      },
      stop: async () => {},
    };
  },
};
