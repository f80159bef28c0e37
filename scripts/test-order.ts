import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The test files that take longest, the longest first. They start first: a file that starts last runs alone, with
 * nothing beside it. Vitest knows durations only from a run before, which a fresh machine has not had; without them it
 * goes by layer and by the size of the file, which says little: a few lines may kill two hundred processes.
 */
export const LONGEST_FILES: readonly string[] = [
  "packages/cli/test/end-to-end/newcomer.test.ts",
  "packages/cli/test/acp-agents/matrix.test.ts",
  "packages/holdfast/test/runtimes/conformance.test.ts",
  "packages/web/test/browser/screens.test.ts",
  "packages/web/test/browser/conversation.test.ts",
  "packages/adapters/test/kill/chat.test.ts",
  "packages/holdfast/test/simulation/crash.test.ts",
  "packages/adapters/test/kill/openai-agents.test.ts",
  "packages/web/test/browser/large.test.ts",
  "packages/holdfast/test/simulation/fault.test.ts",
  "packages/adapters/test/kill/langchain.test.ts",
  "packages/cli/test/end-to-end/journals.test.ts",
  "packages/holdfast/test/conformance/folder.test.ts",
  "packages/holdfast/test/conformance/sqlite.test.ts",
  "packages/holdfast/test/unit/stores/folder/folder-follow.test.ts",
  "packages/holdfast/test/unit/stores/folder/folder-bounds.test.ts",
];

/** A file's place among the longest; behind all of them if it is not one. Pure. */
export function placeOf(path: string, longest: readonly string[] = LONGEST_FILES): number {
  const place = longest.findIndex((file) => path.replaceAll("\\", "/").endsWith(`/${file}`));
  return place < 0 ? longest.length : place;
}

/** The longest files first, of whatever layer; then the order that vitest would choose. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => placeOf(one.moduleId) - placeOf(other.moduleId));
  }
}
