import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { cycleIn, fileGraphOf } from "../../../../../scripts/graph.ts";
import { findCycle, findLargeRooms } from "../../../../../scripts/rules/rooms.ts";
import { checkTestFolders } from "../../../../../scripts/rules/test-folders.ts";
import { checkFile, checkLockFile, checkManifest, PACKAGES } from "../../../../../scripts/rules.ts";
import { sabotages } from "../../../../../scripts/sabotage/list.ts";
import { applied, pathOf } from "../../../../../scripts/sabotage/workshop.ts";

const ROOT = resolve(import.meta.dirname, "../../../../..");
const LIBRARY = "packages/holdfast/src/";

describe("the rules of the layers notice", () => {
  const bad: [what: string, path: string, text: string, rule: RegExp][] = [
    ["node:fs outside disk/", `${LIBRARY}stores/folder/x.ts`, 'import * as fs from "node:fs";', /only disk\/ imports/],
    [
      "node:fs by another name",
      `${LIBRARY}journal/x.ts`,
      'const fs = await import("fs/promises");',
      /only disk\/ imports/,
    ],
    ["a lease path", `${LIBRARY}stores/folder/x.ts`, 'join(root, "leases")', /lease module/],
    ["a lease path in a template", `${LIBRARY}stores/sqlite/x.ts`, "`$" + "{file}-leases`", /lease module/],
    [
      "a store that imports a session",
      `${LIBRARY}stores/folder/x.ts`,
      'import { a } from "../../session/fold.ts";',
      /lower layer/,
    ],
    [
      "a journal that imports a store",
      `${LIBRARY}journal/x.ts`,
      'import { a } from "../stores/lease.ts";',
      /lower layer/,
    ],
    [
      "a store that imports another",
      `${LIBRARY}stores/sqlite/x.ts`,
      'import { a } from "../folder/heal.ts";',
      /lower layer/,
    ],
    [
      "an entry point for stores that exports a view",
      `${LIBRARY}store.ts`,
      'export { a } from "./view/messages.ts";',
      /lower layer/,
    ],
    ["a dependency", `${LIBRARY}journal/x.ts`, 'import { z } from "zod";', /no runtime dependency/],
    [
      "a tool of the command that imports the agent",
      "packages/cli/src/tools/files/x.ts",
      'import type { Services } from "../../agent/services.ts";',
      /lower layer/,
    ],
    [
      "an agent that imports its host, loaded late",
      "packages/cli/src/agent/x.ts",
      'const { LocalHost } = await import("../host/local/local-host.ts");',
      /lower layer/,
    ],
    [
      "a page that imports the server's files",
      "packages/web/src/api/x.ts",
      'import type { z } from "../../../server/src/schemas/session.ts";',
      /only the entries of another/,
    ],
    [
      "a package without a table that loads another's file",
      "packages/new/src/x.ts",
      'const a = await import("../../cli/src/main.ts");',
      /only the entries of another/,
    ],
    [
      "an adapter that imports another",
      "packages/adapters/src/langgraph/x.ts",
      'import { a } from "../ai-sdk/durable.ts";',
      /lower layer/,
    ],
    [
      "a folder that imports what stands above its sub-folders",
      "packages/adapters/src/ai-sdk/x.ts",
      'import { durable } from "./index.ts";',
      /lower layer/,
    ],
    [
      "a connection to PostgreSQL that knows who may write",
      "packages/postgres/src/connection/x.ts",
      'import type { Lease } from "../leases/leases.ts";',
      /lower layer/,
    ],
    [
      "a laboratory for disks that imports the one for processes",
      "packages/testkit/src/simulation/x.ts",
      'import { a } from "../kill/victim.ts";',
      /lower layer/,
    ],
    [
      "a page whose state draws",
      "packages/web/src/state/x.ts",
      'import { Icon } from "../parts/Icon.tsx";',
      /lower layer/,
    ],
    ["a room that no table names", "packages/cli/src/new/x.ts", 'import { a } from "../store/open.ts";', /no table/],
    ["one that imports only the base", "packages/cli/src/new/x.ts", 'import { a } from "../exit.ts";', /no table/],
    [
      "a base file that imports a room",
      "packages/cli/src/exit.ts",
      'import { a } from "./config.ts";',
      /may import only/,
    ],
    ["a focused test", "packages/holdfast/test/unit/x.test.ts", ["test", "only('x', () => {})"].join("."), /focused/],
    ["a wide comment", "packages/cli/src/x.ts", `// ${"word ".repeat(30)}`, /120 columns/],
    ["a long file", `${LIBRARY}journal/x.ts`, "\n".repeat(600), /at most 500 lines/],
  ];
  test.each(bad)("%s", (_what, path, text, rule) => {
    expect(
      checkFile(path, text)
        .map((found) => found.rule)
        .join(),
    ).toMatch(rule);
  });

  test("versions that are not exact, and addresses of registries", () => {
    expect(checkManifest("package.json", '{"devDependencies":{"a":"^1.2.3"}}')).toHaveLength(1);
    expect(checkManifest("packages/holdfast/package.json", '{"dependencies":{"a":"1.2.3"}}')).toHaveLength(1);
    expect(checkLockFile("package-lock.json", '{"resolved": "https://r.example/a.tgz"}')).toHaveLength(1);
  });

  test("and let good ones pass", () => {
    expect(
      checkFile(
        `${LIBRARY}stores/folder/x.ts`,
        'import { a } from "../lease.ts";\nimport { b } from "../../disk/disk.ts";',
      ),
    ).toEqual([]);
    expect(checkFile(`${LIBRARY}disk/x.ts`, 'import * as fs from "node:fs";')).toEqual([]);
  });
});

test.each(PACKAGES.map((one) => [one.sources, one] as const))("no rooms of %s import each other", (_sources, one) => {
  expect(findCycle(one)).toBeNull();
  const [first, second] = Object.keys(one.rooms) as [string, string];
  const circular = { ...one, rooms: { ...one.rooms, [first]: [second], [second]: [first] } };
  expect(findCycle(circular)).toEqual([first, second, first]);
});

test("files that import each other in a circle are noticed, also if they import only types", () => {
  const folder = "packages/new/src/a";
  const sources = [
    { path: `${folder}/one.ts`, text: 'import { two } from "./two.ts";' },
    { path: `${folder}/two.ts`, text: 'import type { Three } from "../b/three.ts";' },
    { path: "packages/new/src/b/three.ts", text: "export interface Three {}" },
  ];
  expect(cycleIn(fileGraphOf(sources, "new"))).toBeNull();
  const back = { path: "packages/new/src/b/three.ts", text: 'import type { One } from "../a/one.ts";' };
  expect(cycleIn(fileGraphOf([...sources.slice(0, 2), back], "new"))).toEqual([
    ...[`${folder}/one.ts`, `${folder}/two.ts`, back.path, `${folder}/one.ts`],
  ]);
});

test("a room with too many files or lines is noticed", () => {
  const sized = (files: number, each: number) =>
    new Map(Array.from({ length: files }, (_, i) => [`packages/cli/src/tools/${i}.ts`, each] as const));
  const found = (files: number, each: number) => findLargeRooms("packages/cli/src/", sized(files, each)).length;
  expect([found(16, 100), found(17, 1), found(6, 417)]).toEqual([0, 1, 1]);
});

test("unit tests that stand where no room is, and folders with too many of them, are noticed", () => {
  const rulesFor = (...paths: string[]) =>
    checkTestFolders(["packages/new/src/index.ts", "packages/new/src/a/b/one.ts", ...paths]).map(({ rule }) => rule);
  const many = (count: number) => Array.from({ length: count }, (_, i) => `packages/new/test/unit/a/${i}.test.ts`);
  expect(rulesFor("packages/new/test/unit/index.test.ts", "packages/new/test/unit/a/b/one.test.ts")).toEqual([]);
  expect(rulesFor("packages/new/test/kill/c/one.test.ts", "packages/testkit/test/unit/repository/x.test.ts")).toEqual(
    [],
  );
  expect(rulesFor("packages/new/test/unit/b/one.test.ts")).toEqual([
    expect.stringMatching(/no packages\/new\/src\/b$/),
  ]);
  expect(rulesFor(...many(30))).toEqual([]);
  expect(rulesFor(...many(31))).toEqual([expect.stringMatching(/at most 30 files; this one has 31/)]);
});

describe("every sabotage still fits the code that it breaks", () => {
  test.each(sabotages.map((sabotage) => [sabotage.name, sabotage] as const))("%s", (_name, sabotage) => {
    const text = readFileSync(join(ROOT, pathOf(sabotage)), "utf8");
    expect(applied(sabotage, text)).not.toBe(text);
  });
});
