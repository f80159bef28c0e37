import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { forkOf } from "../../../doctor/test/damage/claude-code-fork.ts";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { temporaryHome } from "../command.ts";

/** Types the commands of docs/guides/rescue.md on sessions with the damage it describes. */
const GUIDE = readFileSync(join(import.meta.dirname, "../../../../docs/guides/rescue.md"), "utf8");

/** What the guide shows for a command, in a section. */
function shown(section: string, command: string): string {
  const text = GUIDE.split(/^## /m).find((each) => each.startsWith(section))!;
  const block = [...text.matchAll(/^```\n([\s\S]*?)^```/gm)].map(([, inside]) => inside!);
  const found = block.find((each) => each.startsWith(`$ ${command}\n`));
  return found!.slice(`$ ${command}\n`.length);
}

/** Without what differs from run to run: places on the disk, ids of backups, and numbers of bytes. */
function plain(text: string, root: string): string {
  return text
    .replaceAll(root.replaceAll(/[^a-zA-Z0-9]/g, "-"), "-home-you")
    .replaceAll(`${root}/home`, "/home/you")
    .replaceAll(/\bbyte \d+/g, "byte N")
    .replaceAll(/\d+ bytes before, \d+ now/g, "N bytes before, N now")
    .replaceAll(/\b\d{14}-[0-9a-f]{8}\b/g, "<backup>");
}

const LF = 0x0a;
function linesOf(bytes: Buffer): Buffer[] {
  const lines = [];
  for (let at = 0, end = bytes.indexOf(LF); end >= 0; at = end + 1, end = bytes.indexOf(LF, at))
    lines.push(bytes.subarray(at, end));
  return lines;
}
const fileOf = (lines: readonly Buffer[]): Buffer => Buffer.concat(lines.flatMap((line) => [line, Buffer.from([LF])]));

/** A home with a session of each of five agents; that of one is damaged. */
function homeWith(agent: string, harm: (lines: Buffer[], file: string) => Buffer[]) {
  const own = temporaryHome();
  // As long as the place of the recordings: Codex's index counts bytes.
  const root = mkdtempSync("/tmp/holdf-");
  for (const format of ["claude-code", "codex", "pi", "copilot", "gemini"]) {
    const recording = listRecordings(format).findLast(
      ({ story, version }) => story === "work" && version !== "0.87.1",
    )!;
    const placed = placeRecording(recording, root);
    if (format !== agent) continue;
    const { id } = recording.sessions[0]!;
    const path = Object.keys(recording.modes).find((name) => name.includes(id) && name.endsWith(".jsonl"))!;
    const file = join(placed.home, path.replace("-tmp-holdfast-lab", root.replaceAll(/[^a-zA-Z0-9]/g, "-")));
    writeFileSync(file, fileOf(harm(linesOf(readFileSync(file)), file)));
  }
  const HOME = join(root, "home");
  return {
    type: async (...args: string[]) => {
      const { stdout, code } = await own.run(args, { env: { HOME, XDG_DATA_HOME: join(root, "data") } });
      return [code, plain(stdout, root)];
    },
    [Symbol.dispose]() {
      own[Symbol.dispose]();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

const guide = (section: string, command: string): string => plain(shown(section, command), "/nowhere");

describe("docs/guides/rescue.md", () => {
  test("Claude Code lost messages after a power cut", async () => {
    using home = homeWith("claude-code", (lines) => lines.with(33, Buffer.alloc(lines[33]!.length)));
    const section = "Claude Code lost messages";
    expect(await home.type("doctor")).toEqual([1, guide(section, "holdfast doctor")]);
    const answered = guide(section, "holdfast doctor --fix").split("[y/N] y\n")[1]!;
    expect(await home.type("doctor", "--fix", "--yes")).toEqual([0, expect.stringContaining(answered)]);
    expect(await home.type("doctor", "--undo")).toEqual([0, expect.stringContaining("is as it was before the fix of")]);
    expect(await home.type("doctor")).toEqual([1, guide(section, "holdfast doctor")]);
  });

  test("Claude Code says that there is no conversation", async () => {
    const fork = "5c1e6c1a-52a8-4a7e-9d0b-3f0f8e0d7a11";
    using home = homeWith("claude-code", (lines, file) => {
      const id = basename(file, ".jsonl");
      writeFileSync(join(dirname(file), `${fork}.jsonl`), forkOf(fileOf(lines), id, fork));
      return [];
    });
    const words = guide("Claude Code says", "holdfast doctor --fix --yes");
    expect(await home.type("doctor", "--fix", "--yes")).toEqual([0, words]);
  });

  test("Codex refuses a session whose first line is gone", async () => {
    using home = homeWith("codex", (lines) => lines.slice(1));
    const words = guide("Codex refuses", "holdfast doctor --fix --yes");
    expect(await home.type("doctor", "--fix", "--yes")).toEqual([0, words]);
  });

  test("pi opens only the last messages", async () => {
    using home = homeWith("pi", (lines) => lines.toSpliced(9, 2, Buffer.concat([lines[9]!, lines[10]!])));
    const words = guide("pi opens only", "holdfast doctor --fix --yes");
    expect(await home.type("doctor", "--fix", "--yes")).toEqual([0, words]);
  });

  test("Copilot CLI lost an event", async () => {
    using home = homeWith("copilot", (lines) => {
      const text = lines[28]!.toString("utf8").replace(/([^\\])\\n/, "$1\n");
      return lines.with(28, Buffer.from(text));
    });
    const words = guide("Copilot CLI lost", "holdfast doctor bf426872 --fix").replace(/^Repair .*\n/m, "");
    expect(await home.type("doctor", "bf426872", "--fix", "--yes")).toEqual([0, words]);
  });
});
