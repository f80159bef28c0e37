import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import { replyTo } from "../../../../src/models/offline/reply.ts";
import { chance, type Driven, drive, request, Workbench } from "./offline-workbench.ts";

const seed = seedOf(import.meta.url, "unit");

interface Task {
  readonly prompt: string;
  readonly files: Readonly<Record<string, string>>;
  readonly commands?: Readonly<Record<string, (files: Map<string, string>) => string>>;
}

const SOURCES = Object.fromEntries(
  Array.from({ length: 11 }, (_, index) => [
    `src/part${index}.ts`,
    `const tide = ${index};\nexport { tide };\n// ${"tide ".repeat(index)}\n`,
  ]),
);

const TASKS: Readonly<Record<string, Task>> = {
  "a rename": { prompt: "rename tide to wave in src", files: { ...SOURCES, "README.md": "tide" } },
  "a rename to a name that holds the old one": { prompt: "rename tide to tideline in src", files: SOURCES },
  "a count": {
    prompt: "count words in docs",
    files: { "docs/a.md": "one two\nthree\n", "docs/b.md": "", "docs/c/d.md": "x y z", "e.md": "no" },
  },
  "steps that append to one file": {
    prompt:
      'Make a plan and do each step: 1. write log.md: begin 2. append log.md: one 3. append log.md: one 4. edit log.md: replace "begin" with "begin here" 5. append log.md: two 6. edit other.txt: replace "a" with "b" 7. run build (makes out.txt) 8. append log.md: one',
    files: { "other.txt": "a a\n" },
    commands: {
      build: (files) => {
        files.set("out.txt", `${files.get("out.txt") ?? ""}built\n`);
        return "";
      },
    },
  },
  "a write": { prompt: "write a/b.txt: hello\\nworld", files: {} },
  reads: { prompt: "read a.txt, b.txt and c.txt", files: { "a.txt": "a", "b.txt": "b" } },
  delegation: { prompt: "delegate:\n- write a.txt: x\n- write b.txt: y", files: {} },
};

function run(
  { prompt, files, commands }: Task,
  disturbed?: { seed: number; summariesMax: number },
): Driven & { bench: Workbench } {
  const bench = new Workbench(files, commands);
  const disturbance = disturbed && {
    chance: chance(disturbed.seed),
    killsMax: 50,
    summariesMax: disturbed.summariesMax,
  };
  return { ...drive(bench, prompt, disturbance), bench };
}

describe.each(Object.entries(TASKS))("%s", (_name, task) => {
  const undisturbed = run(task);

  test("P4: killed at up to 50 random instants, the files end as in an undisturbed run", () => {
    const property = fc.property(fc.nat(), (n) => {
      const { bench, ids } = run(task, { seed: n, summariesMax: 0 });
      expect(Object.fromEntries(bench.files)).toEqual(Object.fromEntries(undisturbed.bench.files));
      expect(new Set(ids).size).toBe(ids.length);
    });
    holds(property, seed, 60);
  });

  test("C7: the same when the conversation is summed up in between", () => {
    const property = fc.property(fc.nat(), (n) => {
      const { bench } = run(task, { seed: n, summariesMax: 8 });
      expect(Object.fromEntries(bench.files)).toEqual(Object.fromEntries(undisturbed.bench.files));
    });
    holds(property, seed, 60);
  });

  test("the same messages, the same answer: also at every earlier request", () => {
    for (let end = 1; end <= undisturbed.messages.length; end++) {
      const messages = undisturbed.messages.slice(0, end);
      expect(replyTo(request(structuredClone(messages)))).toEqual(replyTo(request(messages)));
    }
    expect(run(task).messages).toEqual(undisturbed.messages);
  });
});
