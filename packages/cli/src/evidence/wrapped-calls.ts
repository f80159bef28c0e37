import { join } from "node:path";
import { changesSince, type FileRules, KeptFiles, noteFolder } from "@holdfast/acp/internal/evidence";
import type { CallEvidence } from "@holdfast/acp/internal/wrap";
import { sessionOutputs } from "../store/output-folders.ts";
import { ownStore } from "../tools/paths/own-store.ts";
import { isSecret } from "../tools/paths/secret-files.ts";
import { NOTES, rulesFor } from "./folder-notes.ts";

/** How the folders of wrapped agents are noted: beside the store, and without its files. */
export function evidenceIn(storeUrl: string): (journal: string) => CallEvidence {
  const own = ownStore(storeUrl);
  return (journal) => {
    const place = (): { readonly kept: KeptFiles; readonly rules: FileRules } | null => {
      // Made when the first call is noted.
      const outputs = sessionOutputs(storeUrl, journal);
      return outputs === null
        ? null
        : { kept: new KeptFiles(join(outputs, NOTES)), rules: rulesFor(own, outputs, isSecret) };
    };
    return {
      note: async (folder, named, areOthersNeeded) => {
        const found = place();
        return found && noteFolder(folder, found.kept, { named, rules: found.rules, areOthersNeeded });
      },
      changes: async (folder, ref) => {
        const found = place();
        return found && changesSince(ref, found.kept, { folder, rules: found.rules });
      },
    };
  };
}
