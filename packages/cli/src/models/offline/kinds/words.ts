import type { Job } from "../evidence/job.ts";

/** An answer without tools. */
export function sayJob(title: string, text: string, thought?: string): Job {
  return {
    title,
    next: (_known, from) => ({ kind: "answer", text, to: from, progress: {}, ...(thought ? { thought } : {}) }),
  };
}

export const ABILITIES = [
  "write notes.md: some text",
  "append log.md: a line",
  'edit notes.md: replace "some" with "more"',
  "read notes.md and log.md",
  "list src",
  "search for TODO in src",
  "rename oldName to newName in src",
  "count words in docs",
  "run ls -l",
  "1. write a.txt: one 2. append a.txt: two 3. run cat a.txt",
  "delegate: count words in docs",
  "plan: 1. read the notes 2. write the report",
  'use mcp__notes__find: {"text":"harbour"}',
  "think about rivers",
  "tell me a story of 40 lines",
];

export function helpText(prompt: string): string {
  return [
    "I am the offline model: a few hundred lines of code, no intelligence, no network, no key. I am here so that everything else can be tried.",
    "",
    `I did not understand "${prompt.replace(/\s+/g, " ").slice(0, 80)}". What I can do:`,
    "",
    ...ABILITIES.map((ability) => `- \`${ability}\``),
    "",
    "For real work, name a real model: `--model anthropic/…`, `openai/…`, `google/…`, or `compatible/…` with `--base-url`.",
  ].join("\n");
}

export function thinkThought(about: string): string {
  const sides = [
    "what it is",
    "what it is not",
    "who cares about it",
    "what could go wrong",
    "what it costs",
    "what comes next",
  ];
  const lines = sides.map(
    (side, index) =>
      `${index + 1}. Let me consider ${side}, in the matter of ${about}. There is more to say than fits here, and less than one would like.`,
  );
  return [
    `The question is ${about}.`,
    ...lines,
    "I have gone round in a circle, which is the shape of a finished thought.",
  ].join("\n");
}

const OPENINGS = [
  "In the morning",
  "Later that day",
  "Without a word",
  "Far out at sea",
  "Behind the third door",
  "When the lamp went out",
  "Nobody knew why, but",
];
const HEROES = [
  "the keeper",
  "an old journal",
  "the second process",
  "a patient reader",
  "the harbour master",
  "a small lease",
  "the writer",
];
const DEEDS = [
  "counted every record twice",
  "wrote one more line",
  "looked at the torn page",
  "waited for the disk to answer",
  "found nothing missing",
  "held fast",
  "began again where it had stopped",
];
const COLOURS = [
  "🌊 The tide came in.",
  "It was quiet.",
  "日本語の行もここにある。",
  "The clock said 03:14.",
  "👩‍🚀 Somebody waved.",
  "Ça va, thought the ship.",
  "Ничего не потеряно.",
];

/** Markdown with headings, lists, code, emoji and wide characters: exactly `count` lines, or about `count` words. */
export function story(count: number, unit: "lines" | "words"): string {
  const lines: string[] = [];
  let words = 0;
  for (let index = 0; unit === "lines" ? lines.length < count : words < count; index++) {
    const line = storyLine(index);
    lines.push(line);
    words += line.split(/\s+/).filter((word) => word !== "").length;
  }
  // Close a code block that would stay open at the end.
  const isOpen = lines.filter((line) => line.startsWith("```")).length % 2 === 1;
  if (isOpen) lines[lines.length - 1] = lines.at(-1) === "```ts" ? "" : "```";
  return lines.join("\n");
}

function storyLine(index: number): string {
  const chapter = Math.floor(index / 20) + 1;
  const sentence = `${pick(OPENINGS, index)} ${pick(HEROES, index * 3 + chapter)} ${pick(DEEDS, index * 5 + chapter)}. ${pick(COLOURS, index + chapter)}`;
  switch (index % 20) {
    case 0:
      return `## Chapter ${chapter}: ${pick(HEROES, chapter)}`;
    case 1:
    case 8:
    case 12:
    case 17:
      return "";
    case 9:
    case 10:
    case 11:
      return `- **${pick(HEROES, index)}** ${pick(DEEDS, index + chapter)} (line ${index + 1})`;
    case 13:
      return "```ts";
    case 14:
      return `const chapter${chapter} = await journal.append({ line: ${index + 1} });`;
    case 15:
      return `console.log(chapter${chapter}.seq, "✓");`;
    case 16:
      return "```";
    default:
      return sentence;
  }
}

function pick(from: readonly string[], index: number): string {
  return from[index % from.length]!;
}
