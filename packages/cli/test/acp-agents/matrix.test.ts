import { expect, test } from "vitest";
import { faultsOf, playCell } from "./cell.ts";
import { notHere, share, titleOf } from "./matrix.ts";

for (const cell of share) {
  const missing = notHere ?? cell.agent.program.missing;
  if (missing === null)
    test.concurrent(`${titleOf(cell)}; then the session is loaded`, async () => {
      expect(faultsOf(await playCell(cell))).toEqual([]);
    });
  else console.log(`not run: ${titleOf(cell)}: ${missing}`);
}

test("each kill is tried in each state, and each agent in every state", () => {
  expect(new Set(share.map(({ kill, state }) => `${kill}, ${state}`)).size).toBe(16);
  expect(share).toHaveLength(16);
  expect(new Set(share.map(({ agent, state }) => `${agent.name}, ${state}`)).size).toBe(12);
});
