import { openStore, type Session, type Store } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { pausingDisk } from "../kill/pausing-disk.ts";
import { mixSeeds, seededRandom } from "../simulation/random.ts";
import { liveTurn } from "./conduct.ts";
import type { AgentJob } from "./job.ts";
import { Recorder, tell } from "./recorder.ts";
import { shownBy } from "./stage.ts";
import { type Message, voiceOf } from "./voices.ts";

/**
 * The program of the child process: an agent with a scripted model and tools that leave traces. It runs until it is
 * killed.
 */
async function main(): Promise<void> {
  const job = JSON.parse(process.argv[2] ?? "null") as AgentJob;
  // A session store takes no disk option: make the real disk pause.
  if (job.point) Object.assign(nodeDisk, pausingDisk({ ...nodeDisk }, job.point));
  tell({ e: "ready" });
  if (job.turns === 0) return tell({ e: "done" });
  const random = seededRandom(mixSeeds(job.seed, job.life, 0xa9e7));
  const recorder = new Recorder(job.life);
  const store = await openStore(job.address, { durability: job.durability, recordsToolStarts: true });
  let session = await open(store, job, recorder, job.session);
  for (let nth = 0; nth < job.turns; nth++) {
    await liveTurn({ job, voice: voiceOf(job.voice), random, recorder, session }, nth === 0);
    if (!random.chance(0.12)) continue;
    const { id } = session;
    await recorder.try({ do: "close" }, () => session.close());
    session = await open(store, job, recorder, id);
  }
  tell({ e: "idle" });
  setInterval(() => undefined, 1000);
}

async function open(store: Store, job: AgentJob, recorder: Recorder, id: string | null): Promise<Session<Message>> {
  const options = { draftMs: job.draftMs };
  const session = await (id === null
    ? recorder.try({ do: "create" }, () => store.create<Message>({ ...options, dialect: job.voice }))
    : store.resume<Message>(id, options));
  tell({ e: "opened", session: session.id, made: id === null, shown: shownBy(session) });
  return session;
}

main().catch((error: unknown) => {
  tell({
    e: "failed",
    message: error instanceof Error ? `${error.stack}\n${String(error.cause ?? "")}` : String(error),
  });
  process.exit(1);
});
