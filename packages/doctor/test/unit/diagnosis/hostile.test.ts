import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENTS, Door, diagnose, sessionsAt } from "../../../src/index.ts";
import { fileOf, seeded } from "../../damage/line-damage.ts";

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-hostile-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const NOWHERE = { environment: {}, home: "/nowhere" };
const SEED = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const again = `HOLDFAST_SEED=${SEED} npx vitest run packages/doctor/test/unit/diagnosis/hostile.test.ts`;
const record = (n: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      parentUuid: n === 0 ? null : `u${n - 1}`,
      type: "user",
      uuid: `u${n}`,
      sessionId: "s",
      message: { role: "user", content: `${n}` },
    }),
  );

async function found(path: string): Promise<string[]> {
  using door = new Door();
  const paths: string[] = [];
  for await (const finding of sessionsAt(path, AGENTS, NOWHERE, door))
    if (finding.agent) paths.push(finding.session.path);
  return paths;
}

describe("a folder that somebody else filled", () => {
  test("links are not followed, FIFOs are not waited for, a folder inside of itself ends", async () => {
    const folder = join(scratch, "links");
    const outside = join(scratch, "outside.jsonl");
    mkdirSync(join(folder, "deep"), { recursive: true });
    writeFileSync(outside, fileOf([record(0)]));
    writeFileSync(join(folder, "own.jsonl"), fileOf([record(0)]));
    symlinkSync(outside, join(folder, "link.jsonl"));
    symlinkSync(folder, join(folder, "deep", "again"));
    execFileSync("mkfifo", [join(folder, "pipe.jsonl")]);
    expect(await found(folder)).toEqual([join(folder, "own.jsonl")]);
    using door = new Door();
    expect(() => door.openRaw(join(folder, "pipe.jsonl"))).toThrow("no regular file");
    expect(() => door.openRaw(join(folder, "link.jsonl"))).toThrow("symbolic link");
  });

  test("a file with a hole of 512 MB is read to its end, and what is in front of the hole is there", async () => {
    const path = join(scratch, "hole.jsonl");
    writeFileSync(path, fileOf([record(0), record(1)]));
    truncateSync(path, 512 * 2 ** 20);
    const agent = AGENTS.find(({ name }) => name === "claude-code")!;
    const before = process.memoryUsage().rss;
    const { problems, records } = await diagnose(agent, { agent: agent.name, id: "hole", path, parts: [] });
    expect(problems.map(({ kind }) => kind)).toEqual(["nul-run"]);
    expect(records.intact).toBe(2);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 2 ** 20);
  });

  test("a session that takes too long is left where it is", async () => {
    const path = join(scratch, "slow.jsonl");
    writeFileSync(path, fileOf([record(0), record(1)]));
    const agent = AGENTS.find(({ name }) => name === "claude-code")!;
    const session = { agent: agent.name, id: "slow", path, parts: [] };
    const { problems } = await diagnose(agent, session, null, undefined, -1);
    expect(problems).toMatchObject([{ kind: "unopenable", detail: expect.stringContaining("takes longer") }]);
  });

  test("a record with a depth of 100,000 ends no process", async () => {
    const path = join(scratch, "deep.jsonl");
    writeFileSync(
      path,
      `${record(0)}\n{"type":"user","sessionId":"s","uuid":"x","a":${"[".repeat(100_000)}${"]".repeat(100_000)}}\n${record(1)}\n`,
    );
    const agent = AGENTS.find(({ name }) => name === "claude-code")!;
    const { records } = await diagnose(agent, { agent: agent.name, id: "deep", path, parts: [] });
    expect(records.intact).toBeGreaterThanOrEqual(2);
  });

  for (const agent of AGENTS) {
    test(`${agent.name}: bytes of any kind are read to their end (again: ${again})`, async () => {
      const random = seeded(SEED);
      const path = join(scratch, `${agent.name}.jsonl`);
      const words = [
        '{"',
        '":',
        "}",
        "]",
        "[",
        '"',
        "\\",
        "\n",
        "\r\n",
        "\0",
        "\u2028",
        "\xff",
        "null",
        "1",
        ",",
        '{"type":"user"',
        record(0).toString(),
        '"payload":{',
        '"id":"a"',
      ];
      for (let turn = 0; turn < 300; turn++) {
        const parts = Array.from(
          { length: Math.floor(random() * 60) },
          () => words[Math.floor(random() * words.length)]!,
        );
        writeFileSync(path, Buffer.from(parts.join(""), random() < 0.5 ? "latin1" : "utf8"));
        using door = new Door();
        for (const session of agent.find(path, door)) {
          const { problems } = await diagnose(agent, session);
          for (const { place } of problems) expect(place.file.startsWith(scratch), `turn ${turn}; ${again}`).toBe(true);
        }
      }
    });
  }
});
