import type { PackageRooms } from "./rooms.ts";

/** The rooms of the doctor. Each agent is a room of its own: no agent imports another. */
const READERS = ["contract/", "files/", "keep/", "scan/", "jsonl/", "mend/", "document/", "transfer/"];

export const DOCTOR_ROOMS: PackageRooms = {
  sources: "packages/doctor/src/",
  base: [],
  rooms: {
    // What a reader is: plain types, and the words for each kind of problem.
    "contract/": ["files/"],
    // Opens, lists and copies what strangers wrote.
    "files/": ["salvage/"],
    // Pages of a damaged SQLite file in; a new database with its rows out.
    "salvage/": [],
    // The files of a session in; copies that lose nothing out.
    "keep/": ["contract/", "files/"],
    // Bytes in; records, and what is wrong with their text, out. Pure.
    "scan/": [],
    // A table of a format in; a reader of its lines out.
    "jsonl/": ["contract/", "files/", "scan/"],
    // A damaged file of lines in; the edits that repair it out.
    "mend/": ["contract/", "files/", "scan/", "jsonl/"],
    // A file that is one document of JSON in; its records, and the edits that repair it, out.
    "document/": ["contract/", "files/", "scan/", "jsonl/", "mend/"],
    // What the records of a new session need. Pure.
    "transfer/": ["contract/"],
    // Records in; what is wrong with the conversation out. Pure.
    "judge/": ["contract/"],
    // One folder for each agent.
    "agents/claude-code/": READERS,
    "agents/cline/": READERS,
    "agents/codex/": READERS,
    "agents/copilot/": READERS,
    "agents/dsh/": READERS,
    "agents/gemini/": READERS,
    "agents/goose/": READERS,
    "agents/opencode/": [...READERS, "salvage/"],
    "agents/pi/": READERS,
    "agents/simple/": READERS,
    "agents/zot/": READERS,
    // The list of them.
    "agents/": [
      "contract/",
      "agents/claude-code/",
      "agents/cline/",
      "agents/codex/",
      "agents/copilot/",
      "agents/dsh/",
      "agents/gemini/",
      "agents/goose/",
      "agents/opencode/",
      "agents/pi/",
      "agents/simple/",
      "agents/zot/",
    ],
    // Sessions in, reports out.
    "diagnosis/": ["contract/", "files/", "keep/", "scan/", "judge/", "agents/"],
    // Records in; messages that Holdfast resumes out.
    "conversation/": ["contract/", "files/"],
    // Sessions in; a list of them, and an index of their words, out.
    "overview/": ["contract/", "files/", "diagnosis/"],
    // Plans, applied.
    "fix/": ["contract/", "files/", "keep/", "diagnosis/"],
    // Sessions followed while agents write them; what they have goes to a keeper, what is wrong is said.
    "watch/": ["contract/", "files/", "keep/", "diagnosis/", "fix/"],
    "index.ts": [
      ...["contract/", "files/", "keep/", "agents/", "diagnosis/", "fix/", "conversation/", "overview/", "watch/"],
    ],
  },
};
