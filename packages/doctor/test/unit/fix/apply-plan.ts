import { join } from "node:path";
import { Door } from "../../../src/files/door.ts";
import { Executor } from "../../../src/fix/executor.ts";
import { failAt } from "./fault.ts";
import { planIn } from "./plan-of-everything.ts";

export function applyPlan(folder: string): void {
  using door = new Door();
  const executor = new Executor(planIn(folder), new Map(), door);
  try {
    executor.draft();
    executor.publish(join(folder, "backups"), { agent: "test", session: "s" });
  } finally {
    executor.discard();
  }
}

// As a program: `apply-plan.ts <folder> <call>` dies before that call.
if (process.argv[1] === import.meta.filename) {
  using _ = failAt(Number(process.argv[3]), "kill");
  applyPlan(process.argv[2]!);
}
