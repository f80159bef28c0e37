import * as holdfast from "holdfast";
import * as internal from "holdfast/internal";
import * as store from "holdfast/store";
import { expect, test } from "vitest";

// docs/API.md has the types too; `packages/testkit/test/unit/repository/api-page.test.ts` keeps it equal to the code.
test("the top exports what an agent needs, and nothing of journals and single stores", () => {
  expect(Object.keys(holdfast).sort()).toEqual([
    "HeldBack",
    "HoldfastError",
    "accountOf",
    "credentials",
    "cutOffWords",
    "decideCall",
    "dialects",
    "errorCodes",
    "errorKind",
    "guard",
    "idFrom",
    "isHoldfastError",
    "mapDialect",
    "newId",
    "openStore",
    "partsOf",
    "toolCall",
    "typedState",
    "wellFormed",
  ]);
  expect(Object.keys(store).filter((name) => name in holdfast)).toEqual([]);
  expect(Object.keys(store)).toEqual(expect.arrayContaining(["openJournalStore", "openStoreWith", "Ledger"]));
});

test("the internal entry repeats nothing of the public ones", () => {
  expect(Object.keys(internal).filter((name) => name in holdfast || name in store)).toEqual([]);
});
