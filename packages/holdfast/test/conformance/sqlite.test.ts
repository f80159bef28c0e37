import { describeConformance } from "@holdfast/testkit";
import { describe, test } from "vitest";
import { subjectOnDisk } from "./on-disk.ts";

const capabilities = {
  durability: "power",
  lease: "kernel",
  sync: true,
  shared: true,
  pack: false,
  dies: true,
} as const;

describeConformance(subjectOnDisk("sqlite", "sqlite", capabilities), { describe, test });
