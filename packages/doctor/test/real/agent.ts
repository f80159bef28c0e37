import type { Damage } from "./damage.ts";
import type { Program, ProgramName } from "./programs.ts";
import type { Story } from "./stories.ts";

/** One thing that a model is shown of a conversation. */
export interface Unit {
  readonly kind: "user" | "assistant" | "reasoning" | "call" | "result";
  /** Of a call: its input as JSON. */
  readonly text: string;
  /** Which call this is, or which one it answers. */
  readonly call?: string;
  /** The tool's name. */
  readonly name?: string;
}

/** What a program makes of a session in its home. */
export interface Verdict {
  /** It is in the program's own list; null if the program has no list that runs without a terminal. */
  readonly isListed: boolean | null;
  /** It opens the session by its id and goes on with it. */
  readonly loads: boolean;
  /** The program's own words if it refuses, or the API's rules that the request breaks. */
  readonly says: string;
  /** What the model is shown when the session goes on, without the system's prompt. */
  readonly units: readonly Unit[];
}

/** A home folder with sessions: where the program was told that HOME is, and the folder that it worked in. */
export interface Place {
  readonly home: string;
  readonly work: string;
}

/** A program that nobody here wrote, as the laboratory uses it. */
export interface Agent {
  readonly name: ProgramName;
  /** Whose format it writes: the folder of its recordings. */
  readonly format: string;
  readonly stories: readonly string[];
  /** Plays a story in the home and returns the ids of its sessions. */
  write(program: Program, place: Place, story: Story): Promise<readonly string[]>;
  /** Which files of its home a recording keeps. */
  isRecorded(path: string): boolean;
  /** Cuts what fills a recording without being conversation: the program's own prompts and descriptions of tools. */
  shorten?(place: Place): void;
  /** The recording that is harmed. */
  readonly harmedStory: string;
  /** What can happen to its files, one place for each kind. */
  readonly damage: readonly Damage[];
  /** The file that holds this session. */
  fileOf(place: Place, id: string): string | undefined;
  /** Lets the program load a session. It may write to the home: give it a copy. */
  judge(program: Program, place: Place, id: string): Promise<Verdict>;
}
