import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";

/**
 * What probed sources call. This file is copied next to them and runs in the tests' processes, also in those that tests
 * start and kill: these write each new hit at once.
 */

interface State {
  /** By the number of the probe: 1 if it was hit. */
  hits: Uint8Array;
  /** The file and the name of the test that runs, as one text; empty between tests. */
  test: string;
  /** In the process of the tests hits are collected until the test is over. */
  collects: boolean;
}

const TEST = "HOLDFAST_MUTATE_TEST";
const PROBES_MAX = 1 << 16;
const KEY = Symbol.for("holdfast.mutate");
const shared = globalThis as unknown as Record<symbol, State | undefined>;
shared[KEY] ??= { hits: new Uint8Array(PROBES_MAX), test: process.env[TEST] ?? "", collects: false };
const state = shared[KEY];
const log = join(import.meta.dirname, "hits", `${process.pid}-${threadId}`);

export function probe(number: number): void {
  if (state.hits[number] === 1) return;
  state.hits[number] = 1;
  if (!state.collects) write([number]);
}

/**
 * From now on hits belong to this test of this file; `name` is null between the tests. Child processes are told by
 * their environment.
 */
export function beginTest(file: string, name: string | null): void {
  if (state.collects) {
    const hits: number[] = [];
    for (let number = state.hits.indexOf(1); number !== -1; number = state.hits.indexOf(1, number + 1))
      hits.push(number);
    if (hits.length > 0) write(hits);
  }
  state.collects = true;
  state.hits.fill(0);
  state.test = JSON.stringify([file, name]);
  process.env[TEST] = state.test;
}

function write(hits: readonly number[]): void {
  appendFileSync(log, `${JSON.stringify({ test: state.test, hits })}\n`);
}
