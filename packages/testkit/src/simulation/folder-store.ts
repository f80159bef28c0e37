import { openFolderStore } from "holdfast/internal";
import type { StoreFactory } from "./runner.ts";

/**
 * The real folder store on a simulated disk. Without its catalogue, which is derived and uses SQLite instead of the
 * Disk interface.
 */
export const folderStore: StoreFactory = (disk, options) =>
  openFolderStore("/store", { disk, catalogue: false, ...options });
