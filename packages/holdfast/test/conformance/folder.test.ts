import { describeConformance, type SubjectCapabilities } from "@holdfast/testkit";
import { describe, test } from "vitest";
import { subjectOnDisk } from "./on-disk.ts";

const capabilities: SubjectCapabilities = {
  durability: "power",
  lease: "kernel",
  sync: true,
  shared: true,
  pack: true,
  dies: true,
};

describeConformance(subjectOnDisk("folder", "folder", capabilities), { describe, test });
// The catalogue is only derived (P7, C22): without it every answer is the same.
describeConformance(subjectOnDisk("folder", "folder without a catalogue", capabilities, { catalogue: false }), {
  describe,
  test,
});
