import type { Pool } from "pg";

/** Upper bounds of the buckets of a latency, in seconds; the last bucket has none. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Everything that only grows. Each name says what is counted. */
const COUNTERS = {
  appends: "Units that were acknowledged.",
  records: "Records in them.",
  bytes: "Bytes of these records.",
  appendsFailed: "Units that were refused; nothing of them was written.",
  appendsInDoubt: "Units of which it is unknown whether they were written (SYNC_FAILED).",
  leasesLost: "Sessions that another worker has taken over (LEASE_LOST).",
  statements: "Statements sent to the server, heartbeats and polls included.",
  statementsFailed: "Statements that failed or got no answer.",
  directLost: "How often the direct connection was lost.",
  transactions: "Transactions of the application that were committed with a record.",
  transactionsRolledBack: "Transactions of the application that were rolled back.",
  claims: "Sessions that this worker has claimed, to finish their turns.",
  claimsFinished: "Claimed turns that completed, wait for a person or a time, or were ended on purpose.",
  claimsFailed: "Claimed turns that failed and will be tried again.",
  claimsGivenUp: "Turns that were parked after their last try.",
  claimsGivenBack: "Claims that were given back because the worker was stopped or the store failed.",
} as const;

export type CounterName = keyof typeof COUNTERS;

/** A distribution of times. */
export interface Latency {
  /** How many were at most `le` seconds, cumulatively. The last `le` is infinite. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly count: number;
  /** Seconds, in total. */
  readonly sum: number;
}

/** A snapshot of what a store has done in this process since it was opened. Plain values: export them as you like. */
export interface StoreMetrics {
  readonly counters: Readonly<Record<CounterName, number>>;
  readonly gauges: {
    /** Sessions that this store has open for writing. */
    readonly sessionsOpen: number;
    /** Connections of the pool: all, those not in use, and callers that wait for one. */
    readonly connections: number;
    readonly connectionsIdle: number;
    readonly connectionsWaiting: number;
    /** 1 while the worker has its direct connection. */
    readonly directConnected: number;
  };
  readonly latencies: {
    /** From the call of an append to its acknowledgement, waits in this process included. */
    readonly append: Latency;
    /** From sending a statement to its answer, the wait for a connection included. */
    readonly statement: Latency;
  };
}

/** What is counted of a batch of appends. */
interface BatchFigures {
  readonly units: number;
  readonly records: number;
  readonly bytes: number;
  /** The application's, if it was committed with one. */
  readonly transaction: object | null;
  waitedMs(): Iterable<number>;
}

class Histogram {
  readonly #counts = new Array<number>(BOUNDS.length + 1).fill(0);
  #count = 0;
  #sum = 0;

  add(seconds: number): void {
    const found = BOUNDS.findIndex((bound) => seconds <= bound);
    this.#counts[found < 0 ? BOUNDS.length : found]!++;
    this.#count++;
    this.#sum += seconds;
  }

  get snapshot(): Latency {
    const buckets: { readonly le: number; readonly count: number }[] = [];
    let count = 0;
    for (const [i, own] of this.#counts.entries()) {
      count += own;
      buckets.push({ le: BOUNDS[i] ?? Number.POSITIVE_INFINITY, count });
    }
    return { buckets, count: this.#count, sum: this.#sum };
  }
}

/** Counts what a store does. It only adds numbers, so it costs nothing that could be measured. */
export class Metrics {
  readonly #counters = Object.fromEntries(Object.keys(COUNTERS).map((name) => [name, 0])) as Record<
    CounterName,
    number
  >;
  readonly #append = new Histogram();
  readonly #statement = new Histogram();

  count(name: CounterName, by = 1): void {
    this.#counters[name] += by;
  }

  /** Times a statement. */
  async statement<T>(send: () => Promise<T>): Promise<T> {
    const since = performance.now();
    this.count("statements");
    try {
      return await send();
    } catch (error) {
      this.count("statementsFailed");
      throw error;
    } finally {
      this.#statement.add((performance.now() - since) / 1000);
    }
  }

  /** A batch was acknowledged. */
  appended(batch: BatchFigures): void {
    this.count("appends", batch.units);
    this.count("records", batch.records);
    this.count("bytes", batch.bytes);
    if (batch.transaction) this.count("transactions");
    for (const ms of batch.waitedMs()) this.#append.add(ms / 1000);
  }

  snapshot(pool: Pool, sessionsOpen: number, isDirect: boolean): StoreMetrics {
    return {
      counters: { ...this.#counters },
      gauges: {
        sessionsOpen,
        connections: pool.totalCount,
        connectionsIdle: pool.idleCount,
        connectionsWaiting: pool.waitingCount,
        directConnected: isDirect ? 1 : 0,
      },
      latencies: { append: this.#append.snapshot, statement: this.#statement.snapshot },
    };
  }
}

/**
 * The metrics in the text format of Prometheus, which OpenTelemetry's collector reads too. `labels` are added to each
 * line, for example the name of the worker.
 */
export function prometheusText(metrics: StoreMetrics, labels: Readonly<Record<string, string>> = {}): string {
  const lines: string[] = [];
  const line = (name: string, value: number, more: Readonly<Record<string, string>> = {}): void => {
    const all = Object.entries({ ...labels, ...more }).map(([label, text]) => `${label}="${escaped(text)}"`);
    lines.push(`${name}${all.length > 0 ? `{${all.join(",")}}` : ""} ${value}`);
  };
  const head = (name: string, type: string, help?: string): void => {
    if (help !== undefined) lines.push(`# HELP ${name} ${help}`);
    lines.push(`# TYPE ${name} ${type}`);
  };
  for (const [name, help] of Object.entries(COUNTERS)) {
    const full = `holdfast_${snake(name)}_total`;
    head(full, "counter", help);
    line(full, metrics.counters[name as CounterName]);
  }
  for (const [name, value] of Object.entries(metrics.gauges)) {
    const full = `holdfast_${snake(name)}`;
    head(full, "gauge");
    line(full, value);
  }
  for (const [name, { buckets, count, sum }] of Object.entries(metrics.latencies)) {
    const full = `holdfast_${snake(name)}_seconds`;
    head(full, "histogram");
    for (const { le, count: below } of buckets)
      line(`${full}_bucket`, below, { le: Number.isFinite(le) ? String(le) : "+Inf" });
    line(`${full}_sum`, sum);
    line(`${full}_count`, count);
  }
  return `${lines.join("\n")}\n`;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
