import { openSqliteStore } from "holdfast/internal";
import type { Bench } from "./bench.ts";
import type { Results } from "./figure.ts";
import { ageRow } from "./rows/age.ts";
import { powerInFlight, powerRow, powerSessions, processRow } from "./rows/append.ts";
import { bytesRow } from "./rows/bytes.ts";
import { commandRow } from "./rows/command.ts";
import { doctorRow } from "./rows/doctor.ts";
import { followRow } from "./rows/follow.ts";
import { listRow } from "./rows/list.ts";
import { openEpochRow, openLongRow } from "./rows/open.ts";
import { pageRow } from "./rows/page.ts";
import { peersRow } from "./rows/peers.ts";
import { postgresAppendRow, postgresFollowRow, postgresListRow, postgresResumeRow } from "./rows/postgres.ts";
import { postgresFleetRow } from "./rows/postgres-fleet.ts";
import { serveRow } from "./rows/serve.ts";
import { sessionAppendRow } from "./rows/session-append.ts";
import { sessionReadRow } from "./rows/session-read.ts";
import { sessionRepairRow } from "./rows/session-repair.ts";
import { sessionResumeLongRow, sessionResumeRow } from "./rows/session-resume.ts";
import { sessionStreamRow } from "./rows/session-stream.ts";
import { sessionSyncRow } from "./rows/session-sync.ts";
import { startRow } from "./rows/start.ts";
import { wrapDelayRow, wrapFloodRow, wrapMemoryRow } from "./rows/wrap.ts";

/** One row of the table, or a few that share what they need. */
export interface Row {
  /** What `--only` calls it. */
  readonly name: string;
  readonly measure: (bench: Bench, results: Results) => Promise<void>;
}

export const rows: readonly Row[] = [
  {
    name: "process",
    measure: processRow({
      row: "process",
      what: "process append, awaited, p50",
      atMost: 1.6,
      store: (bench) => bench.folderStore("process"),
    }),
  },
  {
    name: "power",
    measure: powerRow({
      row: "power",
      what: "power append, one at a time, p50",
      atMost: 1.25,
      store: (bench) => bench.folderStore("power"),
    }),
  },
  { name: "in-flight", measure: powerInFlight },
  { name: "power-sessions", measure: powerSessions },
  {
    name: "sqlite-process",
    measure: processRow({
      row: "sqlite-process",
      what: "SQLite store: process append, awaited, p50",
      // A bare INSERT, which commits, takes half of it.
      atMost: 5.5,
      store: (bench) => openSqliteStore(bench.path("sqlite"), { durability: "process" }),
    }),
  },
  {
    name: "sqlite-power",
    measure: powerRow({
      row: "sqlite-power",
      what: "SQLite store: power append, one at a time, p50",
      atMost: 1.25,
      store: (bench) => openSqliteStore(bench.path("sqlite"), { durability: "power" }),
    }),
  },
  { name: "age", measure: ageRow },
  { name: "bytes", measure: bytesRow },
  { name: "open-long", measure: openLongRow },
  { name: "open-epoch", measure: openEpochRow },
  { name: "list", measure: listRow },
  { name: "follow", measure: followRow },
  { name: "session-append", measure: sessionAppendRow },
  { name: "session-stream", measure: sessionStreamRow },
  { name: "session-read", measure: sessionReadRow },
  { name: "session-resume", measure: sessionResumeRow },
  { name: "session-resume-long", measure: sessionResumeLongRow },
  { name: "session-sync", measure: sessionSyncRow },
  { name: "session-repair", measure: sessionRepairRow },
  { name: "postgres-append", measure: postgresAppendRow },
  { name: "postgres-resume", measure: postgresResumeRow },
  { name: "postgres-follow", measure: postgresFollowRow },
  { name: "postgres-list", measure: postgresListRow },
  { name: "postgres-fleet", measure: postgresFleetRow },
  { name: "start", measure: startRow },
  { name: "command", measure: commandRow },
  { name: "serve", measure: serveRow },
  { name: "page", measure: pageRow },
  { name: "wrap-delay", measure: wrapDelayRow },
  { name: "wrap-flood", measure: wrapFloodRow },
  { name: "wrap-memory", measure: wrapMemoryRow },
  { name: "doctor", measure: doctorRow },
  { name: "peers", measure: peersRow },
];
