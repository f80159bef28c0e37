import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import { place } from "../../place.ts";
import { fullAt, type Made, Speaker, said, spoken } from "./sync-agents.ts";

test.each(spoken)(
  "P8, R14 in %s: where there is no space to record that the turn goes on, nothing is recorded behind it",
  async (_, voice) => {
    const { user, calls, result } = new Speaker(voice);
    using here = place();
    const count = { left: 0 };
    const open = () => openStoreWith((given) => openFolderStore(here.path, { ...given, disk: fullAt(count) }));
    const array: Made[] = [user("question"), ...calls("a")];
    let id: string;
    {
      await using store = await open();
      const session = await store.create<Made>({ dialect: voice.dialect as Made });
      id = session.id;
      await session.sync(array);
    }
    await using store = await open();
    const session = await store.resume<Made>(id);
    const before = session.entries.length;
    const grown = [...structuredClone(array), result("a", "A")];
    // The first write says that the session was opened, and the second that the turn goes on.
    for (let nth = 1; nth <= 2; nth++) {
      count.left = nth;
      await expect(session.sync(grown)).rejects.toMatchObject({ code: "STORE_FULL" });
      expect(session.entries).toHaveLength(before);
      expect(session.turn).toBeNull();
    }
    await session.sync(grown);
    expect(session.turn?.number).toBe(1);
    expect(said(session.entries)).toEqual(grown);
  },
);
