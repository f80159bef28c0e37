import type { Case } from "./case.ts";
import { adopting } from "./cases/adopting.ts";
import { appending } from "./cases/appending.ts";
import { badRecords } from "./cases/bad-records.ts";
import { closing } from "./cases/closing.ts";
import { creating } from "./cases/creating.ts";
import { deleting } from "./cases/deleting.ts";
import { epochs } from "./cases/epochs.ts";
import { following } from "./cases/following.ts";
import { keys } from "./cases/keys.ts";
import { leases } from "./cases/leases.ts";
import { lifecycle } from "./cases/lifecycle.ts";
import { listing } from "./cases/listing.ts";
import { packing } from "./cases/packing.ts";
import { reading } from "./cases/reading.ts";
import { size } from "./cases/size.ts";
import { synchronous } from "./cases/synchronous.ts";
import { units } from "./cases/units.ts";
import { working } from "./cases/working.ts";
import { written } from "./cases/written.ts";

/** The contract of a store (`JournalStore` of holdfast), as cases. */
export const conformanceCases: readonly Case[] = [
  ...creating,
  ...appending,
  ...synchronous,
  ...units,
  ...written,
  ...badRecords,
  ...keys,
  ...epochs,
  ...reading,
  ...following,
  ...listing,
  ...working,
  ...leases,
  ...deleting,
  ...closing,
  ...lifecycle,
  ...packing,
  ...adopting,
  ...size,
];
