import { type Account, accountOf, type CallFacts, type Reading } from "holdfast";
import { APP } from "./app.ts";

/** What this agent does with open calls: it runs them, and asks people. Its rules decide again when a call runs. */
export const POLICY = { runs: true, asks: true } as const;

/**
 * The account of a session that this process does not have open. `facts`: what was looked up about its calls. What
 * happens to them is left out: rules and files decide that, and only an agent that opens the session knows them.
 */
export function accountElsewhere(reading: Reading<unknown>, facts: Readonly<Record<string, CallFacts>> = {}): Account {
  const account = accountOf(reading, { app: APP, policy: { ...POLICY, facts } });
  return { ...account, calls: account.calls.map(({ onFinish: _, ...call }) => call) };
}

/** The same of one that this process has just opened: its own hold does not count against it. */
export function accountOnOpening(session: Reading<unknown>): Account {
  return accountOf(session, { app: APP, policy: POLICY, isOpenHere: true });
}
