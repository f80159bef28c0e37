import { HoldfastError } from "holdfast";
import { expect, test } from "vitest";
import { finishInterrupted } from "../../../src/hosting/finish-interrupted.ts";
import type { Hosting } from "../../../src/hosting/hosting.ts";

interface Interrupted {
  readonly id: string;
  readonly state?: string;
  readonly finish?: object;
  readonly resumes?: number;
  readonly status?: string;
  readonly parent?: object;
  readonly unreadable?: object;
  readonly isAsked?: boolean;
  readonly failure?: Error;
  readonly interruption?: null;
  /** The turn that the server remembers to have handed over; each of these has turn 2. */
  readonly handedOver?: number;
  readonly how?: string;
}

/** The server after a restart, with these sessions, one on a page. */
function restarted(sessions: readonly Interrupted[]) {
  const [asked, begun, ended]: [object[], string[], string[]] = [[], [], []];
  const host = {
    list: async (query: { after?: string; status: string }) => {
      asked.push(query);
      const listed = sessions.filter(({ state }) => (state === "paused") === (query.status === "paused"));
      const at = Number(query.after ?? 0);
      return { sessions: listed.slice(at, at + 1), ...(at + 1 < listed.length ? { next: String(at + 1) } : {}) };
    },
    handedOver: (id: string) => sessions.find((one) => one.id === id)!.handedOver ?? null,
    finishesAfterRestart: (id: string) => sessions.find((one) => one.id === id)!.isAsked ?? true,
  };
  const use = async (id: string, work: (chat: object) => Promise<unknown>) => {
    begun.push(id);
    const one = sessions.find((session) => session.id === id)!;
    const { status = "interrupted", state = "interrupted", resumes = 0, failure } = one;
    const finish = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      if (failure) throw failure;
      ended.push(id);
    };
    const how = { kind: one.how ?? "killed" };
    const interruption = one.interruption === null ? null : { resumes, turn: 2, how };
    const account = { state, can: { finish: one.finish ?? true } };
    return work({ id, state: { status, interruption, account }, finish });
  };
  return { hosting: { host, use } as unknown as Hosting, asked, begun, ended };
}

test("what a restart interrupted is finished, over all pages", async () => {
  const { hosting, asked, ended } = restarted([{ id: "killed" }, { id: "twice", resumes: 2 }, { id: "another" }]);
  expect(await finishInterrupted(hosting)).toEqual(["killed", "twice", "another"]);
  expect(ended).toEqual(["killed", "twice", "another"]);
  expect(asked).toEqual([
    { status: "paused", limit: 1000 },
    { status: "interrupted", limit: 1000 },
    { status: "interrupted", limit: 1000, after: "1" },
    { status: "interrupted", limit: 1000, after: "2" },
  ]);
});

test("what a person or a failure ended, what was tried three times, and what nobody asked for, waits", async () => {
  const { hosting, begun, ended } = restarted([
    { id: "child", parent: {} },
    { id: "unreadable", unreadable: {} },
    { id: "not asked", isAsked: false },
    { id: "stopped", state: "stopped" },
    { id: "failed", state: "failed" },
    { id: "waiting", state: "waiting" },
    { id: "another program's", finish: { no: "written-by" } },
    { id: "three times", resumes: 3 },
    { id: "idle", status: "idle" },
    { id: "finished meanwhile", interruption: null },
  ]);
  expect(await finishInterrupted(hosting)).toEqual([]);
  expect(ended).toEqual([]);
  expect(begun).toEqual([
    "stopped",
    "failed",
    "waiting",
    "another program's",
    "three times",
    "idle",
    "finished meanwhile",
  ]);
});

test("what this server handed over goes on, unasked; what only the journal says was handed over does not", async () => {
  const paused = { state: "paused", how: "handed-over", isAsked: false };
  const { hosting, ended } = restarted([
    { id: "handed over", ...paused, handedOver: 2 },
    { id: "killed while it was handed over", isAsked: false, handedOver: 2 },
    { id: "asked", ...paused, isAsked: true },
    { id: "from elsewhere", ...paused },
    { id: "another turn", ...paused, handedOver: 1 },
    { id: "sleeps", ...paused, how: "suspended", handedOver: 2 },
    { id: "stopped since", state: "stopped", isAsked: false, handedOver: 2 },
    { id: "killed before", ...paused, handedOver: 2, resumes: 3 },
    { id: "poisoned", isAsked: false, handedOver: 2, resumes: 3 },
  ]);
  const due = ["handed over", "asked", "killed before", "killed while it was handed over"];
  expect(await finishInterrupted(hosting)).toEqual(due);
  expect(ended).toEqual(due);
});

test("a session that cannot be finished does not keep the others from it; a fault of ours is not hidden", async () => {
  const refused = Object.assign(new Error("no folder"), { name: "CommandError" });
  const { hosting } = restarted([
    { id: "busy", failure: new HoldfastError("SESSION_BUSY", "busy") },
    { id: "folder", failure: refused },
    { id: "good" },
  ]);
  expect(await finishInterrupted(hosting)).toEqual(["good"]);
  const broken = restarted([{ id: "bug", failure: new TypeError("bug") }, { id: "good" }]);
  await expect(finishInterrupted(broken.hosting)).rejects.toThrow("bug");
});
