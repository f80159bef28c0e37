import { brokenAdopting } from "./broken/adopting.ts";
import { brokenClosing } from "./broken/closing.ts";
import { brokenDeleting } from "./broken/deleting.ts";
import { brokenEpochs } from "./broken/epochs.ts";
import { brokenFollowing } from "./broken/following.ts";
import { brokenKeys } from "./broken/keys.ts";
import { brokenLeases } from "./broken/leases.ts";
import { brokenListing } from "./broken/listing.ts";
import { brokenReading } from "./broken/reading.ts";
import { brokenRecords } from "./broken/records.ts";
import { brokenVariants } from "./broken/variants.ts";
import { brokenWorking } from "./broken/working.ts";
import type { BrokenStore } from "./broken/wrap.ts";
import { brokenWriting } from "./broken/writing.ts";
import { brokenWritten } from "./broken/written.ts";

export { goodVariants } from "./broken/variants.ts";
export type { BrokenStore } from "./broken/wrap.ts";

/** Stores that each do one thing wrong: memory stores with a wrapper. */
export const brokenStores: readonly BrokenStore[] = [
  ...brokenReading,
  ...brokenRecords,
  ...brokenWriting,
  ...brokenWritten,
  ...brokenKeys,
  ...brokenEpochs,
  ...brokenFollowing,
  ...brokenListing,
  ...brokenWorking,
  ...brokenLeases,
  ...brokenDeleting,
  ...brokenClosing,
  ...brokenAdopting,
  ...brokenVariants,
];
