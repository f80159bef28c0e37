import { Door } from "../../../src/files/door.ts";
import { Executor, stampOf } from "../../../src/fix/executor.ts";
import { failAt } from "./fault.ts";
import { planIn } from "./plan-of-everything.ts";

/** Applies the plan, in a process that dies or has a full disk at the call that it is told. */
const [folder, at, fault] = process.argv.slice(2) as [string, string, "kill" | "full"];
const plan = planIn(folder);
const stamps = new Map(plan.changes.flatMap(({ path }) => [[path, stampOf(path) ?? ""] as const].filter(([, s]) => s)));
using door = new Door();
const executor = new Executor(plan, stamps, door);
failAt(Number(at), fault);
try {
  executor.draft();
  executor.publish(`${folder}/backups`, { agent: "test", session: "s" });
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  process.exitCode = 7;
} finally {
  executor.discard();
}
