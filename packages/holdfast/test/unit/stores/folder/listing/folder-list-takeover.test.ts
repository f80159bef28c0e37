import { rmSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../../place.ts";

/**
 * Lists that are made while a session is taken over: before every single call that the new writer makes to the disk,
 * another process lists. Then the writer is killed. Whatever those lists put into the catalogue, the next list shows
 * what the session holds.
 */
test.each([
  ["was killed", "killed"],
  ["was killed and looked at", "looked at"],
  ["was closed, and its leases were not restored with it", "closed"],
] as const)("S20: a list made while a session that %s is taken over does not stay in the catalogue", async (_, how) => {
  for (let at = 0; ; at++) {
    using here = place();
    const id = newId();
    const victim = await openFolderStore(here.path, { disk: process_() });
    const journal = await victim.create(id, [{ kind: "session" }]);
    await journal.append({ kind: "message", n: 0 });
    if (how === "closed") await victim.close();
    rmSync(join(here.path, "leases"), { recursive: true });
    if (how === "looked at") {
      const looker = await openFolderStore(here.path, { disk: process_() });
      await looker.open(id);
      rmSync(join(here.path, "leases"), { recursive: true });
    }
    const lister = await openFolderStore(here.path, { disk: process_() });
    await lister.list();
    let calls = 0;
    let listed: Promise<unknown> | undefined;
    let isWriting = false;
    const disk = new Proxy(process_(), {
      get: (target, name: keyof Disk) => {
        const call = target[name] as (...given: unknown[]) => unknown;
        return (...given: unknown[]) => {
          if (isWriting && calls++ === at) listed = lister.list();
          return call(...given);
        };
      },
    });
    const heir = await openFolderStore(here.path, { disk, catalogue: false });
    const opened = await heir.open(id);
    isWriting = true;
    const { last } = await opened.journal.append({ kind: "message", n: 1 });
    isWriting = false;
    await listed;
    // The heir is killed: it closes nothing. Another process lists, with the catalogue that the one before has left.
    const later = await openFolderStore(here.path, { disk: process_() });
    const { sessions } = await later.list();
    expect(sessions, `a list before call ${at}`).toMatchObject([{ id, head: last, closed: false }]);
    await later.close();
    await lister.close();
    if (listed === undefined) return;
  }
});

/** Each disk is a process with its own kernel: the locks of a process that was killed are gone. */
function process_(): Disk {
  return {
    ...nodeDisk,
    lock: () => ({ release() {} }),
    isLocked: () => false,
    hardLock: () => "none" as const,
  };
}
