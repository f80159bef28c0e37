/** Conversations that every program is led through: what the user says, and what the model answers. */

/** What the model wants done, whatever the agent's tool for it is called. */
export type Act =
  | { readonly run: string }
  | { readonly read: string }
  | { readonly write: string; readonly text: string }
  /** A sub-agent with this prompt. */
  | { readonly ask: string };

export interface Step {
  readonly reasoning?: string;
  readonly text?: string;
  readonly acts?: readonly Act[];
}

export interface Turn {
  readonly prompt: string;
  readonly steps: readonly Step[];
  /** The process is killed once its command has made this file in the working folder. */
  readonly killedAt?: string;
  /** Afterwards the conversation is compacted. */
  readonly compact?: true;
}

export interface Story {
  readonly name: string;
  /** One list of turns for each session; every turn is a process of its own. */
  readonly sessions: readonly (readonly Turn[])[];
  /** What sub-agents are asked, and what they do. */
  readonly asides?: readonly Turn[];
}

const HERON: Turn = {
  prompt: "What is a heron? Ω — naïve, 鷺, 👩‍🚀",
  steps: [{ reasoning: "The user asks for a bird.", text: "A heron is a wading bird: 鷺 🦢. Its tail ends here." }],
};
const EGRET: Turn = {
  prompt: "And what do egrets eat?",
  steps: [{ text: 'Egrets eat fish.\nThey also eat frogs,\ttoads and "other" things \\ more.' }],
};
const LOOK: Turn = {
  prompt: "Look around in this folder.",
  steps: [
    { reasoning: "I should run a command first.", text: "I look.", acts: [{ run: "echo one heron" }] },
    { text: "Now I write it down.", acts: [{ write: "notes.txt", text: "one heron\ntwo egrets — 鷺\n" }] },
    { text: "There is one heron in this folder." },
  ],
};
const BATCH: Turn = {
  prompt: "Do three things at once.",
  steps: [
    {
      text: "All three.",
      acts: [{ run: "echo batch-a" }, { read: "notes.txt" }, { run: "echo batch-c >&2; exit 3" }],
    },
    { text: "Two worked, and one failed with status 3." },
  ],
};
const LONG: Turn = {
  prompt: `Remember this list: ${Array.from({ length: 60 }, (_, n) => `bird-${n}`).join(" ")}.`,
  steps: [
    { text: "First I count.", acts: [{ run: "seq 1 120 | tr '\\n' ' '" }] },
    { text: `I have all of it: ${Array.from({ length: 80 }, (_, n) => `nest-${n}`).join(" ")}.` },
  ],
};

/** Where a command says that it runs, before it runs for longer than the test waits. */
export const RUNS = "tool-runs";
const KILLED: Turn = {
  prompt: "Run the long command.",
  steps: [{ text: "It will take long.", acts: [{ run: `touch ${RUNS}; sleep 60` }] }, { text: "It has ended." }],
  killedAt: RUNS,
};

const STEPS: readonly (readonly Turn[])[] = [
  [
    {
      prompt: "Do everything in one go.",
      steps: [
        { reasoning: "I should run a command first.", text: "I look.", acts: [{ run: "echo one heron" }] },
        { text: "Now I write.", acts: [{ write: "notes.txt", text: "one heron\ntwo egrets — 鷺\n" }] },
        { text: "There is one heron in this folder.", acts: [{ run: "echo batch-a" }, { read: "notes.txt" }] },
        { text: EGRET.steps[0]!.text!, acts: [{ run: "echo batch-c" }] },
        { text: "Everything is done: 鷺." },
      ],
    },
  ],
];

export const STORIES: readonly Story[] = [
  { name: "talk", sessions: [[HERON, EGRET]] },
  { name: "work", sessions: [[HERON, LOOK, BATCH, LONG, EGRET]] },
  { name: "steps", sessions: STEPS },
  // The same in a format that its program also has.
  { name: "plain", sessions: STEPS },
  { name: "killed", sessions: [[LOOK, KILLED]] },
  { name: "killed-resumed", sessions: [[LOOK, KILLED, EGRET]] },
  { name: "compacted", sessions: [[LOOK, { ...BATCH, compact: true }, EGRET]] },
  { name: "two", sessions: [[HERON], [EGRET, LOOK]] },
  {
    name: "subagent",
    sessions: [
      [
        {
          prompt: "Let somebody else count the storks.",
          steps: [
            { text: "I delegate it.", acts: [{ ask: "Count the storks in the marsh." }] },
            { text: "The helper counted four storks." },
          ],
        },
        EGRET,
      ],
    ],
    asides: [
      {
        prompt: "Count the storks in the marsh.",
        steps: [{ text: "I count.", acts: [{ run: "echo four storks" }] }, { text: "There are four storks." }],
      },
    ],
  },
];

/** What the model says when it is asked for anything that is in no story: a title, a summary. */
export const SUMMARY = "Summary: the user and the assistant talked about herons, and a folder was looked at.";

export function storyOf(name: string): Story {
  const story = STORIES.find((each) => each.name === name);
  if (!story) throw new Error(`there is no story ${name}`);
  return story;
}

/** For a program that only loads what it has. */
export const EMPTY: Story = { name: "empty", sessions: [] };
