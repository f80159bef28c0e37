import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { sizeOfSession } from "../fixtures.ts";
import { bytesHandedOver } from "../kernel.ts";

/** Bytes that reach the kernel per byte of message, from the first append to the end of the last background sync. */
export async function bytesRow(bench: Bench, results: Results): Promise<void> {
  const rounds: number[] = [];
  for (let round = 0; round < 3; round++) {
    const root = bench.path("bytes");
    await using store = await bench.folderStore("process", {}, root);
    const id = bench.id();
    const journal = await store.create(id, []);
    const before = bytesWritten(root, id);
    let payload = 0;
    for (let i = 0; i < bench.size(10_000, 5000); i++) {
      const entry = bench.entries[i % bench.entries.length]!;
      payload += entry.bytes;
      await journal.append(entry.record);
    }
    await journal.flush();
    rounds.push((bytesWritten(root, id) - before) / payload);
  }
  results.figures.push({
    row: "bytes",
    what: "bytes written per byte of message, process",
    bound: { atMost: 1.12 },
    unit: "×",
    rounds,
    note: "the message's own JSON is the payload; id, turn and envelope are not",
  });
}

/**
 * All that this process has handed to the kernel, where the kernel counts that; else what is in the session's files.
 */
function bytesWritten(root: string, id: string): number {
  return bytesHandedOver() ?? sizeOfSession(root, id);
}
