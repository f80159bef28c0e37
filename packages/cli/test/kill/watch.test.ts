import { appendFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { linesOf } from "../../../doctor/test/damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { seededRandom } from "../../../testkit/src/simulation/random.ts";
import { ended, type Home, temporaryHome } from "../command.ts";

const KILLS = 6 * Number(process.env["HOLDFAST_EFFORT"] ?? 1);

test(`kill -9 of a watch while agents write: nothing is lost, and nothing is there twice`, async () => {
  const seed = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`HOLDFAST_SEED=${seed} repeats this`);
  const random = seededRandom(seed);
  using home = temporaryHome();
  const sessions = ["work", "subagent", "compacted"].map((story) => {
    const recording = listRecordings("claude-code").find((each) => each.story === story)!;
    const placed = placeRecording(recording, join(home.path, story));
    const [project] = readdirSync(join(placed.home, ".claude/projects"));
    const { id } = recording.sessions[0]!;
    const from = join(placed.home, ".claude/projects", project!, `${id}.jsonl`);
    return {
      file: join(home.path, ".claude/projects", project!, `${id}.jsonl`),
      lines: linesOf(readFileSync(from)).map((line) => `${line}\n`),
    };
  });
  for (const { file } of sessions) mkdirSync(dirname(file), { recursive: true });
  const left = sessions.flatMap(({ file, lines }) => lines.map((line) => ({ file, line })));
  const total = left.length;
  for (let kill = 0; kill <= KILLS; kill++) {
    const watch = home.start(["watch"]);
    const end = ended(watch);
    let said = "";
    watch.stderr.on("data", (text) => {
      said += text;
    });
    // The writer goes on while the watch starts, keeps and dies.
    const until = kill === KILLS ? 0 : Math.floor((total * (KILLS - kill - 1)) / KILLS);
    const killAt = Date.now() + random.below(1_200);
    while (left.length > until || (kill < KILLS && Date.now() < killAt)) {
      const next = left.length > until ? left.shift() : undefined;
      // Half of the lines come in two pieces.
      const cut = next && random.chance(0.5) ? random.below(next.line.length) : 0;
      if (next) appendFileSync(next.file, next.line.slice(0, cut));
      await sleep(random.below(20));
      if (next) appendFileSync(next.file, next.line.slice(cut));
    }
    if (kill === KILLS) await expect.poll(() => said).toContain("Following them");
    watch.kill(kill === KILLS ? "SIGTERM" : "SIGKILL");
    await end;
    expect(said, said).not.toContain("alarm");
  }
  const kept = filesIn(join(home.store, "outputs"));
  for (const { file, lines } of sessions) {
    expect(readFileSync(file, "utf8")).toBe(lines.join(""));
    expect(kept.get(file.slice(dirname(file).length + 1))).toBe(lines.join(""));
  }
  expect([...kept.keys()].filter((name) => name.includes(".epoch-"))).toEqual([]);
  const fresh = join(home.path, "fresh");
  for (const { file } of sessions) {
    const [watched, imported] = [await imports(home, file, home.store), await imports(home, file, fresh)];
    expect(watched).toMatchObject({ id: imported.id, added: 0 });
    expect(await messagesIn(home.store, imported.id)).toEqual(await messagesIn(fresh, imported.id));
  }
});

async function imports(
  home: Home,
  file: string,
  store: string,
): Promise<{ readonly id: string; readonly added: number }> {
  const { stdout, stderr, code } = await home.run(["import", file, "--json", "--store", store]);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

async function messagesIn(folder: string, id: string): Promise<readonly unknown[]> {
  await using store = await openStore(folder);
  return (await store.read(id)).messages;
}

/** The kept files by name, without what the watch notes for itself. */
function filesIn(folder: string): Map<string, string> {
  return new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.includes(".jsonl"))
      .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), "utf8")]),
  );
}
