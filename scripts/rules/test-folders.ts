import type { Violation } from "../rules.ts";

const FILES_MAX = 30;
/** Folders of unit tests that test no room: the repository's own pages and scripts. */
const WITHOUT_ROOM = ["packages/testkit/test/unit/repository"];

/** Folders of unit tests that mirror no room of their package, or have too many files to find one's way in. */
export function checkTestFolders(paths: readonly string[]): Violation[] {
  const rooms = new Set<string>();
  const sizes = new Map<string, number>();
  for (const path of paths) {
    const folders = path.split("/").slice(0, -1);
    const [packages, , part, layer] = folders;
    if (packages !== "packages") continue;
    if (part === "src") for (let end = 3; end <= folders.length; end++) rooms.add(folders.slice(0, end).join("/"));
    const folder = folders.join("/");
    if (part === "test" && layer === "unit") sizes.set(folder, (sizes.get(folder) ?? 0) + 1);
  }
  const found: Violation[] = [];
  for (const [folder, files] of sizes) {
    const room = folder.replace("/test/unit", "/src");
    if (!rooms.has(room) && !WITHOUT_ROOM.includes(folder))
      found.push({ path: folder, line: 1, rule: `unit tests stand where their room does, and there is no ${room}` });
    if (files > FILES_MAX)
      found.push({
        ...{ path: folder, line: 1 },
        rule: `a folder of tests has at most ${FILES_MAX} files; this one has ${files}: split it as its room is split`,
      });
  }
  return found;
}
