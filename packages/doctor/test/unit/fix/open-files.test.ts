import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const ID = "0a8f9d60-5a52-4a5e-9a51-3d1a52a10b6b";

/** What is said by a process below a shell that has these words on its command line. */
function saidBelow(...words: readonly string[]): string {
  const script = join(import.meta.dirname, "say-user.ts");
  const command = `"${process.execPath}" --conditions=holdfast-source "${script}" ${ID}; true`;
  return spawnSync("sh", ["-c", command, ...words], { encoding: "utf8" }).stdout.trim();
}

test("an agent that runs the doctor in its own session is seen; what only starts the doctor is not", () => {
  expect(saidBelow("claude", "--resume", ID)).toContain("was started with this session");
  expect(saidBelow("holdfast", "doctor", "--fix", ID)).toBe("nobody");
});
