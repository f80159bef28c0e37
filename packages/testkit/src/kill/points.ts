import type { KillPoint } from "./pausing-disk.ts";
import type { Profile } from "./workload.ts";

/** A point, and what must happen to reach it. */
export interface NamedPoint extends KillPoint {
  readonly profile: Profile;
  /** The session beforehand: not yet created, left with a torn end by a kill, or any. */
  readonly finds: "nothing" | "torn" | "any";
}

const SEGMENT = String.raw`/\d{6}\.jsonl$`;
const FIRST_BORN = String.raw`/000001\.jsonl\.[0-9a-f]{12}\.tmp$`;
const BORN = String.raw`/\d{6}\.jsonl\.[0-9a-f]{12}\.tmp$`;
const PACKED = String.raw`/\d{6}\.jsonl\.zst$`;
const TAIL = String.raw`/\d{6}\.jsonl\.tail-\d+$`;
const TAIL_BORN = String.raw`/\d{6}\.jsonl\.tail-\d+\.[0-9a-f]{12}\.tmp$`;
const KEPT_ASIDE = String.raw`/quarantine/[^/]+\.torn$`;
const BEING_KEPT = String.raw`/quarantine/[^/]+\.torn\.[0-9a-f]{12}\.tmp$`;

const at = (
  name: string,
  step: KillPoint["step"],
  path: string,
  finds: NamedPoint["finds"],
  profile: Profile,
  more: Partial<KillPoint> = {},
): NamedPoint => {
  const [when] = name.split(" ") as [KillPoint["when"]];
  return { name, when, step, path, finds, profile, ...more };
};

/**
 * Steps of the folder store at which a death must do no harm. Names begin with `before`,
 * `during` or `after`.
 */
export const folderPoints: readonly NamedPoint[] = [
  at("after making the session's folder", "makeFolder", "/sessions/[^/]+$", "nothing", "mixed"),
  at("during the write of the first segment", "write", FIRST_BORN, "nothing", "mixed", { share: 0.7 }),
  at("before the naming of the first segment", "link", SEGMENT, "nothing", "mixed"),
  at("after the naming of the first segment", "link", SEGMENT, "nothing", "mixed"),
  at("after the sync of the folder of sessions", "syncFolder", "/sessions$", "nothing", "mixed"),

  at("before a write", "write", SEGMENT, "any", "mixed", { nth: 3 }),
  at("during a write, at its first byte", "write", SEGMENT, "any", "mixed", { nth: 2, share: 1e-9 }),
  at("during a write, at its start", "write", SEGMENT, "any", "mixed", { nth: 4, share: 0.02 }),
  at("during a write, in the middle", "write", SEGMENT, "any", "mixed", { nth: 5, share: 0.5 }),
  at("during a write, before its last byte", "write", SEGMENT, "any", "keyed", { nth: 3, share: 0.999 }),
  at("during a large write", "write", SEGMENT, "any", "large", { bytesMin: 1_000_000, share: 0.6 }),
  at("after a write", "write", SEGMENT, "any", "keyed", { nth: 4 }),
  at("before a sync", "sync", SEGMENT, "any", "mixed", { nth: 3 }),
  at("during a sync", "sync", SEGMENT, "any", "keyed", { nth: 4 }),
  at("after a sync", "sync", SEGMENT, "any", "keyed", { nth: 5 }),

  at("after making a new segment's temporary file", "create", BORN, "any", "epochs"),
  at("during the write of a new epoch", "write", BORN, "any", "epochs", { nth: 2, share: 0.4 }),
  at("before the sync of a new epoch", "sync", BORN, "any", "epochs"),
  at("before the naming of a new epoch", "link", SEGMENT, "any", "epochs", { nth: 2 }),
  at("after the naming of a new epoch", "link", SEGMENT, "any", "epochs", { nth: 3 }),
  at("after the first write to a new segment", "write", SEGMENT, "any", "epochs", { nth: 6 }),

  at("before the rename of a packed segment", "rename", PACKED, "any", "epochs"),
  at("after the rename of a packed segment", "rename", PACKED, "any", "epochs"),
  at("before the removal of what was packed", "remove", SEGMENT, "any", "epochs"),
  at("after the removal of what was packed", "remove", SEGMENT, "any", "epochs", { nth: 2 }),

  at("during the write of the quarantine", "write", BEING_KEPT, "torn", "mixed"),
  at("before the rename of the quarantine", "rename", KEPT_ASIDE, "torn", "mixed"),
  at("after the rename of the quarantine", "rename", KEPT_ASIDE, "torn", "mixed"),
  at("during the write of the tail", "write", TAIL_BORN, "torn", "mixed"),
  at("before the naming of the tail", "link", TAIL, "torn", "mixed"),
  at("after the naming of the tail", "link", TAIL, "torn", "mixed"),
  at("during the write of the segment after a torn one", "write", BORN, "torn", "mixed"),
  at("before the naming of the segment after a torn one", "link", SEGMENT, "torn", "mixed"),
  at("after the naming of the segment after a torn one", "link", SEGMENT, "torn", "mixed"),
];

/** Announces that the kernel is about to get megabytes, and continues: the parent kills it in the middle. */
export const largeWrite: KillPoint = {
  name: "in the middle of a write of megabytes",
  when: "before",
  step: "write",
  path: SEGMENT,
  bytesMin: 1_000_000,
  announce: true,
};

/** Leaves a torn end for the points that need one. */
export const tear: NamedPoint = at("during a write that tears", "write", SEGMENT, "any", "mixed", {
  nth: 2,
  share: 0.6,
});

/**
 * SQLite bypasses the Disk interface, except for the lock of its file, the syncs of its log, and the disk test before
 * the log is emptied.
 */
const LOG = "-wal$";
const TRIAL = "-trial$";
const LOCK = "-lock$";
const HOLDER = "-holder$";

export const sqlitePoints: readonly NamedPoint[] = [
  at("before the lock of the file", "lock", LOCK, "any", "mixed"),
  at("after the lock of the file", "lock", LOCK, "any", "mixed"),
  at("before its holder is named", "rename", HOLDER, "any", "mixed"),
  at("after its holder is named", "rename", HOLDER, "any", "mixed"),
  at("during the trial of the disk", "write", TRIAL, "any", "mixed"),
  at("before the end of the trial of the disk", "remove", TRIAL, "any", "mixed"),
  at("after the trial of the disk", "remove", TRIAL, "any", "mixed"),
  at("before a sync of the log", "sync", LOG, "any", "mixed", { nth: 8 }),
  at("during a sync of the log", "sync", LOG, "any", "keyed", { nth: 9 }),
  at("after a sync of the log", "sync", LOG, "any", "epochs", { nth: 7 }),
];

/** The steps at which a store can be killed. */
export interface KillSteps {
  readonly points: readonly NamedPoint[];
  /** Announces a write of megabytes. */
  readonly large?: KillPoint;
  /** Leaves a torn end. */
  readonly tear?: NamedPoint;
}

/** A store whose disk cannot be observed is killed only at random instants. */
const noSteps: KillSteps = { points: [] };

export const folderSteps: KillSteps = { points: folderPoints, large: largeWrite, tear };
export const sqliteSteps: KillSteps = { points: sqlitePoints };

export function stepsOf(module: string): KillSteps {
  if (module === "folder") return folderSteps;
  return module === "sqlite" ? sqliteSteps : noSteps;
}
