import {
  folderPoints,
  type LifePlan,
  type NamedPoint,
  OwnView,
  type StoreSpec,
  sqlitePoints,
  Trial,
  tear,
  temporaryPlace,
  type Worker,
  warmWorker,
} from "@holdfast/testkit/internal/kill";
import { newId } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOf } from "../seed.ts";

const seed = seedOf(import.meta.url, "kill");

/**
 * Some records first, or a torn end; then the point, and others in the lives after it; then another life, whose
 * reopening is checked twice.
 */
function livesThrough(point: NamedPoint, ...again: NamedPoint[]): LifePlan[] {
  const before: Record<NamedPoint["finds"], LifePlan[]> = {
    nothing: [],
    any: [{ profile: "mixed", ending: { by: "attempt", nth: 3, us: 300 }, after: "look" }],
    torn: [{ profile: tear.profile, ending: { by: "point", point: tear }, after: "look" }],
  };
  return [
    ...before[point.finds],
    { profile: point.profile, ending: { by: "point", point }, after: "look" },
    ...again.map((other): LifePlan => ({ profile: "mixed", ending: { by: "point", point: other }, after: "look" })),
    { profile: "keyed", ending: { by: "attempt", nth: 4, us: 500 }, after: "reopen" },
  ];
}

describe.each([
  { module: "folder", points: folderPoints },
  { module: "sqlite", points: sqlitePoints },
])("P1: an acknowledged append survives SIGKILL, wherever it strikes: $module", ({ module, points }) => {
  const place = temporaryPlace();
  const specIn = (folder: string): StoreSpec => ({
    module,
    place: folder,
    durability: "power",
    segmentBytesMax: 256 * 1024,
  });
  let worker: Worker;

  beforeAll(async () => {
    worker = await warmWorker(specIn(place.path));
  });
  afterAll(() => place[Symbol.dispose]());

  test.concurrent.each(points)("$name", (point) => survives([point]));

  if (module === "folder")
    test.concurrent.each([
      ["after the naming of the tail", "before the naming of the segment after a torn one"],
      ["before the naming of the tail", "after the naming of the tail"],
      ["during the write of the tail", "during the write of the segment after a torn one"],
      ["after the naming of the segment after a torn one", "after the naming of the segment after a torn one"],
    ])("healing that is killed, and killed again: %s, %s", (...names) =>
      survives(names.map((name) => points.find((point) => point.name === name)!)),
    );

  /**
   * With some seeds a step does not happen: an empty tail, for example, is not written to. Then the next seed is used.
   */
  async function survives(points: readonly NamedPoint[]): Promise<void> {
    const names = points.map(({ name }) => name);
    let reached: readonly string[] = [];
    for (let tries = 0; tries < 4 && !names.every((name) => reached.includes(name)); tries++)
      reached = await pointsReached(points, seed + tries);
    expect(reached).toEqual(expect.arrayContaining(names));
  }

  async function pointsReached(
    [point, ...again]: readonly NamedPoint[],
    trialSeed: number,
  ): Promise<readonly string[]> {
    // A store for each: in SQLite the log is everybody's, and another session's writer might have emptied it.
    using own = temporaryPlace(place.path);
    const spec = specIn(own.path);
    await using view = await OwnView.open(spec);
    const trial = new Trial(view, spec, worker, newId(), trialSeed);
    for (const plan of livesThrough(point!, ...again)) await trial.run(plan);
    expect(trial.findings.faults).toEqual([]);
    expect(trial.findings.kills).toBeGreaterThanOrEqual(2);
    return [...trial.findings.points.keys()];
  }
});
