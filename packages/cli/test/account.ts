import type { Account, CallAccount } from "holdfast";

/** The account of a session of this command, as a test wants it. */
export function accountWith(change: Partial<Account> = {}): Account {
  const nothing = { no: "nothing-to-finish", words: "Nothing to finish: the last turn completed." } as const;
  return {
    ...{ session: "s1", cursor: null, app: "holdfast", state: "idle", holder: null, turn: null, interruption: null },
    ...{ calls: [], settled: [], queued: 0, words: { status: change.state ?? "idle", detail: [] } },
    can: {
      retry: { no: "not-parked", words: "Workers have not given up on it." },
      ...{ prompt: true, finish: nothing, leave: nothing, answer: nothing, stop: nothing, fork: true },
      takeOver: { no: "own", words: "This program can continue it without taking it over." },
    },
    ...change,
  };
}

/** A call that was running when its process died. */
export function cutOffCall(id: string, change: Partial<CallAccount> = {}): CallAccount {
  return {
    ...{ id, message: "m", name: "shell", input: { command: "npm test" }, state: "outcome-unknown" },
    ...{ effect: "possible", onFinish: "tell-model", words: "started, outcome unknown" },
    ...change,
  };
}
