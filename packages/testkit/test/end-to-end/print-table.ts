import { brokenStores, catchersOf, proofTable } from "@holdfast/testkit/internal/conformance";

/**
 * Prints the table of docs/TESTING.md: `npx -c 'node --conditions=holdfast-source
 * packages/testkit/test/end-to-end/print-table.ts'`.
 */
const caught = new Map<string, ReadonlySet<string>>();
for (const broken of brokenStores) caught.set(broken.name, new Set((await catchersOf(broken)).keys()));
process.stdout.write(proofTable(caught));
