import { describeConformance } from "@holdfast/testkit";
import { describe, test } from "vitest";
import { subjectOnDisk } from "./on-disk.ts";

describeConformance(subjectOnDisk("sqlite", "sqlite"), { describe, test });
