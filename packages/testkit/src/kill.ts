/** The kill laboratory: writers of a store, in real processes, killed at random instants and at named disk steps. */

export { type CampaignOptions, type Receipt, runCampaign, type SessionFault } from "./kill/campaign.ts";
export type { StoreModule, StoreSpec } from "./kill/stores.ts";
