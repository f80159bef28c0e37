import {
  type Attempt,
  judge,
  type LabEvent,
  Log,
  openSpec,
  programBeside,
  type StoreSpec,
  temporaryPlace,
  Victim,
  viewOf,
  type WorkerJob,
} from "@holdfast/testkit/internal/kill";
import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import { needs } from "./allowed.ts";

const program = programBeside(import.meta.resolve("../../../testkit/src/kill/index.ts"), "worker");
const noShell = process.platform === "win32" ? "needs a POSIX shell" : null;

/**
 * `ulimit -f` needs no root: the kernel cuts the write that crosses the limit short, and answers the next with EFBIG.
 * (Node ignores SIGXFSZ, so that it lives to hear of it.) The limit counts blocks of 512 bytes.
 */
describe.each(["folder", "sqlite"])("C19: a short write, then EFBIG (%s)", (module) => {
  test("the unit is taken back, the session goes on, and nothing is there twice", async (context) => {
    needs(context, "short write", noShell);
    using place = temporaryPlace();
    const store: StoreSpec = { module, place: place.path, durability: "power" };
    const session = newId();
    const log = new Log();
    await using writer = new Victim(program, { store, session } satisfies WorkerJob, { shell: "ulimit -f 400" });
    writer.onEvent((event) => log.hear(event));
    await writer.until("answer");
    writer.say({ do: "create", attemptId: 1 });
    await writer.until("opened");

    const append = async (attempt: Attempt): Promise<LabEvent> => {
      const from = writer.events.length;
      writer.say({ do: "append", attempt });
      return writer.until(["ack", "refused", "doubt"], () => true, from);
    };
    const refused: LabEvent[] = [];
    for (let id = 2; refused.length < 3 && id < 400; id++) {
      const answer = await append({ id, kind: "append", parts: 2, chars: 3000 });
      if (answer.e !== "ack") refused.push(answer);
    }
    expect(refused).toHaveLength(3);
    for (const answer of refused) expect(answer).toMatchObject({ e: "refused", code: "STORE_FULL" });
    writer.kill();
    await writer.died;

    await using here = await openSpec(store);
    const { journal, recovery } = await here.open(session);
    // It was cut back at once, and not left for the next writer to heal.
    expect(recovery).toMatchObject({ cutBytes: 0, damaged: [], missing: [] });
    await journal.append({ kind: "lab.after" });
    await journal.close();
    expect(judge(log, await viewOf(here.history(session)))).toEqual([]);
    expect(log.acknowledged).toBeGreaterThan(5);
  });
});
