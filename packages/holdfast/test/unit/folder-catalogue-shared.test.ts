import { newId } from "holdfast";
import { openFolderStore } from "holdfast/store";
import { expect, test } from "vitest";
import { CountingDisk } from "../counting-disk.ts";
import { place } from "../place.ts";

test("S20: a row that another store wrote to the catalogue is used, without a look into the session", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using reader = await openFolderStore(here.path, { disk: counting.disk });
  await using writer = await openFolderStore(here.path);
  await (await writer.create(newId(), [])).close();
  expect((await reader.list()).sessions).toHaveLength(1);

  await (await writer.create(newId(), [])).close();
  counting.reset();
  expect((await reader.list()).sessions).toHaveLength(2);
  expect(counting.bytesRead(), "no byte of any journal").toBe(0);
});
