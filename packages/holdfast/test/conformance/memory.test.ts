import { describeConformance, memorySubject } from "@holdfast/testkit";
import { describe, test } from "vitest";

describeConformance(memorySubject(), { describe, test });
