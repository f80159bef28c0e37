/** For the tests of this repository: the cases of the suite, and the broken stores that prove them. */

export { brokenStores, goodVariants } from "./broken.ts";
export { conformanceCases } from "./cases.ts";
export { conformance } from "./conformance.ts";
export { catchersOf, proofTable, subjectOf } from "./proof.ts";
