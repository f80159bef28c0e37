import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removeRandomFolder, socketFolder } from "../../../src/acp/wrap-place.ts";

const room = { nameChars: 27, pathBytesMax: 103 };

function withFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync("/tmp/hf-place-");
  try {
    work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.skipIf(process.platform === "win32")("sockets are in the runtime folder, which only the user can open", () => {
  withFolder((folder) => {
    const found = socketFolder(room, { XDG_RUNTIME_DIR: folder });
    expect(found).toBe(join(folder, "holdfast"));
    expect(statSync(found).mode & 0o777).toBe(0o700);
    chmodSync(found, 0o755);
    expect(socketFolder(room, { XDG_RUNTIME_DIR: folder })).toBe(found);
    expect(statSync(found).mode & 0o777).toBe(0o700);
  });
});

test.skipIf(process.platform === "win32")(
  "a folder that is a link, or whose path is too long for a socket, is not used",
  () => {
    withFolder((folder) => {
      mkdirSync(join(folder, "elsewhere"));
      symlinkSync(join(folder, "elsewhere"), join(folder, "holdfast"));
      expect(socketFolder(room, { XDG_RUNTIME_DIR: folder })).not.toContain(folder);
      const deep = join(folder, "x".repeat(90));
      mkdirSync(deep);
      expect(socketFolder(room, { XDG_RUNTIME_DIR: deep })).not.toContain(deep);
      expect(socketFolder(room, { XDG_RUNTIME_DIR: "relative" })).not.toContain("relative");
    });
  },
);

test("another user's folder is not used", (context) => {
  if (process.getuid?.() !== 0) return context.skip("not run: only root can give a folder to another user");
  withFolder((folder) => {
    mkdirSync(join(folder, "holdfast"));
    chownSync(join(folder, "holdfast"), 12_345, 12_345);
    expect(socketFolder(room, { XDG_RUNTIME_DIR: folder })).not.toContain(folder);
  });
});

test.skipIf(process.platform === "win32")(
  "if no place is left, the folder has a random name, and is removed with its supervisor",
  () => {
    const found = socketFolder({ nameChars: 27, pathBytesMax: 0 }, {});
    expect(found).toMatch(/^\/tmp\/holdfast-\w{6}$/);
    expect(statSync(found).mode & 0o777).toBe(0o700);
    removeRandomFolder(join(found, "x.sock"));
    expect(statSync(found, { throwIfNoEntry: false })).toBeUndefined();
  },
);
