import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { realPath } from "../../../src/disk/node-disk.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { defaultAddress } from "../../../src/stores/default-address.ts";
import { place } from "../../place.ts";

const never = (): string => {
  throw Object.assign(new Error("no home"), { code: "ENOENT" });
};

describe("the store that is meant if none is named", () => {
  const windows = "C:\\Users\\ann";
  test.each([
    ["linux", {}, "/home/ann", "/home/ann/.local/share/holdfast"],
    ["linux", { XDG_DATA_HOME: "/data" }, "/home/ann", "/data/holdfast"],
    ["linux", { XDG_DATA_HOME: "data" }, "/home/ann", "/home/ann/.local/share/holdfast"],
    ["linux", { XDG_DATA_HOME: "" }, "/home/ann", "/home/ann/.local/share/holdfast"],
    ["linux", { HOLDFAST_STORE: "" }, "/home/ann", "/home/ann/.local/share/holdfast"],
    ["freebsd", { LOCALAPPDATA: "/x" }, "/home/ann", "/home/ann/.local/share/holdfast"],
    ["darwin", { XDG_DATA_HOME: "/data" }, "/Users/ann", "/Users/ann/Library/Application Support/Holdfast"],
    ["win32", { LOCALAPPDATA: "D:\\Local" }, windows, "D:\\Local\\Holdfast"],
    ["win32", { LOCALAPPDATA: "Local" }, windows, "C:\\Users\\ann\\AppData\\Local\\Holdfast"],
    ["win32", { XDG_DATA_HOME: "C:\\x" }, windows, "C:\\Users\\ann\\AppData\\Local\\Holdfast"],
  ])("%s, %j: %s → %s", (platform, env, home, address) => {
    expect(defaultAddress(env, platform, () => home)).toBe(address);
  });

  test("HOLDFAST_STORE comes first, on every system, whatever it is, and needs no home", () => {
    for (const platform of ["linux", "darwin", "win32"])
      expect(defaultAddress({ HOLDFAST_STORE: "memory:", XDG_DATA_HOME: "/x" }, platform, never)).toBe("memory:");
    expect(defaultAddress({ XDG_DATA_HOME: "/x" }, "linux", never)).toBe("/x/holdfast");
  });

  test.each([
    ["linux", never],
    ["darwin", () => ""],
    ["win32", () => "ann"],
  ])("no home on %s: it says what to set", (platform, home) => {
    try {
      defaultAddress({}, platform, home);
      expect.unreachable();
    } catch (error) {
      expect(isHoldfastError(error, "STORE_URL_INVALID")).toBe(true);
      expect(String(error)).toContain("Set HOLDFAST_STORE");
    }
  });
});

describe("the real path of a folder", () => {
  test("is the same by whatever link it is reached, also when it is gone", () => {
    using here = place();
    const real = realpathSync(here.path);
    mkdirSync(join(real, "project"));
    symlinkSync(join(real, "project"), join(real, "link"));
    expect(realPath(join(here.path, "link"))).toBe(join(real, "project"));
    expect(realPath(join(here.path, "link", "gone", "deeper"))).toBe(join(real, "project", "gone", "deeper"));
    expect(realPath(`${here.path}/link/.//`)).toBe(join(real, "project"));
    expect(realPath(".")).toBe(realpathSync(process.cwd()));
  });

  test("a link that leads nowhere, or round in a circle, is taken as it is named", () => {
    using here = place();
    const real = realpathSync(here.path);
    symlinkSync(join(real, "nowhere"), join(real, "dangling"));
    symlinkSync(join(real, "circle"), join(real, "circle"));
    expect(realPath(join(real, "dangling", "x"))).toBe(join(real, "dangling", "x"));
    expect(realPath(join(real, "circle"))).toBe(join(real, "circle"));
  });
});
