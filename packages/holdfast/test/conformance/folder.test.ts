import { describeConformance } from "@holdfast/testkit";
import { describe, test } from "vitest";
import { subjectOnDisk } from "./on-disk.ts";

describeConformance(subjectOnDisk("folder", "folder"), { describe, test });
// The catalogue is only derived (P7, C22): without it every answer is the same.
describeConformance(subjectOnDisk("folder", "folder without a catalogue", { catalogue: false }), { describe, test });
