import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../../..");
const LINES = readFileSync(join(ROOT, "docs/ARCHITECTURE.md"), "utf8").split("\n");
/** A file's name without its ending, a file or a folder. What a declaration is called is not written like this. */
const PLACE = /^[a-z0-9-]+(?:\/[a-z0-9-]+)*\/?(?:\.tsx?)?$/;

const inCode = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The tables of rooms: the folder that each is about, and its rows. */
const tables: { readonly sources: string; readonly rows: readonly (readonly [room: string, found: string])[] }[] = [];
for (const [at, line] of LINES.entries()) {
  const sources = /^\| room of `(.+?)`/.exec(line)?.[1];
  if (sources === undefined) continue;
  const rest = LINES.slice(at + 2);
  const rows = rest.slice(0, rest.indexOf("")).map((row) => row.split("|").slice(1, 3) as [string, string]);
  tables.push({ sources, rows });
}

test("every path that ARCHITECTURE writes out leads somewhere", () => {
  const paths = LINES.flatMap(inCode).filter((code) => /^(?:packages|scripts|docs)\/[\w./-]+$/.test(code));
  expect(paths.length).toBeGreaterThan(15);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

describe.each(tables)("the rooms of $sources", ({ sources, rows }) => {
  const folder = join(ROOT, sources);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const manifest = JSON.parse(readFileSync(join(folder, "../package.json"), "utf8")) as {
    readonly name: string;
    readonly exports?: Readonly<Record<string, unknown>>;
  };
  const entries = Object.keys(manifest.exports ?? {}).map((entry) => manifest.name + entry.slice(1));

  test.each(rows)("%s: it and what is named in it exist", (room, found) => {
    const rooms = inCode(room);
    expect(rooms.filter((name) => !existsSync(join(folder, name)))).toEqual([]);
    const inRoom = files.filter((file) => rooms.some((name) => file.startsWith(name.endsWith("/") ? name : "")));
    const isThere = (name: string): boolean => {
      const bare = name.replace(/\/$/, "");
      if ([folder, ROOT].some((above) => existsSync(join(above, bare)))) return true;
      return inRoom.some((file) => `/${file.replace(/\.tsx?$/, "")}`.endsWith(`/${bare}`) || file.endsWith(`/${bare}`));
    };
    const places = inCode(found).filter((code) => PLACE.test(code) && !entries.includes(code));
    expect(places.filter((name) => !isThere(name))).toEqual([]);
  });

  test("the table has every folder", () => {
    const folders = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isDirectory());
    const named = rows.flatMap(([room]) => inCode(room));
    expect(folders.map(({ name }) => `${name}/`).filter((name) => !named.some((room) => room === name))).toEqual([]);
  });
});

test("every package with rooms has a table", () => {
  const packages = readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}/src`);
  expect(tables.map(({ sources }) => sources).sort()).toEqual(packages.filter((path) => existsSync(join(ROOT, path))));
});
