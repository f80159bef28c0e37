import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

test("C24: PATH_UNSAFE tells the path, and what stands there in place of a session", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const [file, link] = [newId(), newId()];
  const pathOf = (id: string): string => join(here.path, "sessions", id);
  writeFileSync(pathOf(file), "");
  symlinkSync(here.path, pathOf(link));
  const refusal = (id: string, kind: string) => ({ code: "PATH_UNSAFE", facts: { path: pathOf(id), kind } });
  await expect(store.open(file)).rejects.toMatchObject(refusal(file, "file"));
  await expect(store.open(link)).rejects.toMatchObject(refusal(link, "link"));
});
