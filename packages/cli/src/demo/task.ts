/**
 * What the demo's agent works on: a small project, and a prompt with several steps, each of which a kill can interrupt
 * in a different way. Pure.
 */
export interface Task {
  /** Contents by path. */
  readonly files: Readonly<Record<string, string>>;
  readonly prompt: string;
  /** Exactly what it may do without asking. */
  readonly allow: readonly string[];
  /** Small enough to force a compaction. */
  readonly windowTokens: number;
}

/** The task's command appends a line to this file each time it runs: the effect that must not happen twice. */
export const EFFECTS = "releases.log";

const COMMAND = "sh release.sh";

/** Takes effect at once but returns late: the worst moment to die. */
const RELEASE = `echo "2.4 released" >> ${EFFECTS}
echo "uploading 2.4 ..."
sleep 2
echo "uploaded"
echo 2.4 > released.txt
`;

const MODULES = ["account", "avatar", "inbox", "profile", "search", "team"];
const CHAPTERS = ["install", "usage", "reference", "questions"];
const NOTES_PER_FOLDER = 3;
const WINDOW_TOKENS = 3600;
const TOKENS_PER_FOLDER = 300;

/** More kills need more work, which would otherwise end first. */
export function taskFor(kills: number): Task {
  const folders = Math.max(0, Math.ceil((kills - 6) / 2));
  const files: Record<string, string> = { "release.sh": RELEASE, [EFFECTS]: "" };
  for (const name of MODULES) files[`src/${name}.js`] = moduleText(name);
  for (const name of CHAPTERS) files[`docs/${name}.md`] = chapterText(name);
  const steps = [
    "rename fetchUser to loadUser in src",
    `run ${COMMAND} (makes released.txt)`,
    "count words in docs to reports/docs.md",
  ];
  for (let folder = 1; folder <= folders; folder++) {
    for (let note = 1; note <= NOTES_PER_FOLDER; note++) {
      files[`notes/${folder}/note-${note}.md`] = chapterText(`note ${note}`);
    }
    steps.push(`count words in notes/${folder} to reports/notes-${folder}.md`);
  }
  steps.push("delegate: 1. count words in src to reports/src.md 2. rename teh to the in docs");
  return {
    files,
    prompt: steps.map((step, index) => `${index + 1}. ${step}`).join("\n"),
    allow: ["edit(src/**)", "edit(docs/**)", "write(reports/**)", `shell(${COMMAND})`],
    // A summary mentions every step, so more steps need more space.
    windowTokens: WINDOW_TOKENS + folders * TOKENS_PER_FOLDER,
  };
}

function moduleText(name: string): string {
  return `import { fetchUser } from "./users.js";\n\nexport const ${name} = async (id) => (await fetchUser(id)).${name};\n`;
}

function chapterText(name: string): string {
  const lines = Array.from({ length: 5 }, (_, index) => `Paragraph ${index + 1} says what teh reader needs to know.`);
  return `# ${name}\n\n${lines.join("\n")}\n`;
}
