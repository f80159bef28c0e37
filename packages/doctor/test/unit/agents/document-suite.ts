import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Agent, SessionPlace } from "../../../src/contract/agent.ts";
import { diagnose } from "../../../src/diagnosis/diagnose.ts";
import { Door } from "../../../src/files/door.ts";
import { fix } from "../../../src/fix/fix.ts";
import { DOCUMENT_DAMAGE, type DocumentDamage, testDocument } from "../../damage/document-damage.ts";
import { seeded } from "../../damage/line-damage.ts";
import { kindsIn, recordsOf } from "./agent-suite.ts";

/** What every reader of whole documents must do with each kind of damage to them. */

const PLACES = Number(process.env["HOLDFAST_EFFORT"] ?? 1);

export interface DocumentSubject {
  readonly name: string;
  /** Writes the session below a folder: the file that is harmed. */
  place(folder: string): string;
}

export interface DocumentSuite {
  readonly agent: Agent;
  readonly subjects: readonly DocumentSubject[];
  readonly list: string | null;
  readonly seed: number;
  /** Damage that this format cannot have, or that its agent does not mind. */
  readonly without?: readonly string[];
}

export function describeDocumentAgent({ agent, subjects, list, seed, without = [] }: DocumentSuite): void {
  const root = mkdtempSync(join(tmpdir(), "holdfast-document-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const sessionAt = (path: string): SessionPlace => {
    using door = new Door();
    return [...agent.find(path, door)][0]!;
  };
  let folders = 0;
  const placed = (subject: DocumentSubject): string => {
    const folder = join(root, String(folders++));
    mkdirSync(folder);
    return subject.place(folder);
  };

  describe(`${agent.title}: whole documents`, () => {
    test("healthy ones are not reported, and not changed", async () => {
      for (const subject of subjects) {
        const path = placed(subject);
        const before = readFileSync(path);
        expect(kindsIn(await diagnose(agent, sessionAt(path))), subject.name).toEqual([]);
        expect(await fix(agent, sessionAt(path), { backups: join(root, "backups") })).toBe(null);
        expect(readFileSync(path).equals(before)).toBe(true);
      }
    });
    for (const [index, damage] of DOCUMENT_DAMAGE.entries()) {
      if (without.includes(damage.name)) continue;
      test(damage.name, async () => {
        let cases = 0;
        for (const subject of subjects)
          for (let place = 0; place < PLACES; place++)
            if (await harmAndFix(subject, damage, seed + 1_000 * index + place)) cases++;
        expect(cases).toBeGreaterThan(0);
      });
    }
  });

  async function harmAndFix(subject: DocumentSubject, damage: DocumentDamage, number: number): Promise<boolean> {
    const path = placed(subject);
    const document = testDocument(readFileSync(path, "utf8"), list);
    const session = sessionAt(path);
    const units = document.places.map(([from, to]) => {
      const value: unknown = JSON.parse(document.bytes.subarray(from, to).toString("utf8"));
      return unitsIn(value);
    });
    const harm = damage.harm(document, seeded(number));
    if (harm === null) return false;
    const what = `${damage.name}, seed ${number}, ${subject.name}`;
    writeFileSync(path, harm.bytes);
    const found = kindsIn(await diagnose(agent, session));
    expect(
      damage.named.some((kind) => found.includes(kind)),
      `${what}: ${found.join(", ") || "nothing found"}`,
    ).toBe(true);
    const fixed = await fix(agent, session, { backups: join(root, "backups") });
    expect(fixed, `${what}: nothing was repaired`).not.toBe(null);
    expect(kindsIn(fixed!.diagnosis), what).toEqual([]);
    expect(() => JSON.parse(readFileSync(path, "utf8")), what).not.toThrow();
    const after = (await recordsOf(agent, session)).flatMap(({ value }) => unitsIn(value)).join("\n");
    for (const [n, all] of units.entries()) {
      if (harm.lost.includes(n)) continue;
      for (const unit of all)
        expect(
          after.includes(unit) || after.includes(JSON.stringify(unit).slice(1, -1)),
          `${what}: a unit of message ${n} is missing: ${unit}`,
        ).toBe(true);
    }
    const bytes = readFileSync(path);
    expect(await fix(agent, session, { backups: join(root, "backups") }), `${what}: repaired twice`).toBe(null);
    expect(readFileSync(path).equals(bytes)).toBe(true);
    return true;
  }
}

/** Texts that must be found again: of results, calls and speech. A result may have become text. */
function unitsIn(value: unknown): string[] {
  const texts: string[] = [];
  const stack = [value];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (typeof at === "string" && at.length > 12) texts.push(JSON.stringify(at).slice(1, -1).slice(0, 2_000));
    else if (typeof at === "object" && at !== null)
      stack.push(...Object.values(at).filter((inner) => inner !== null && inner !== undefined));
  }
  return texts;
}
