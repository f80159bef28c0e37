import { afterAll, afterEach, beforeEach, expect } from "vitest";
import { beginTest } from "./probe.ts";

/** Runs before each test file, and tells the probes which test runs. */
const file = expect.getState().testPath ?? "";
beginTest(file, null);
beforeEach(({ task }) => beginTest(file, task.fullTestName));
afterEach(() => beginTest(file, null));
afterAll(() => beginTest(file, null));
