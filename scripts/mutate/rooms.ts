import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** A part of the sources that is judged by itself. */
export interface Room {
  readonly name: string;
  /** A folder or a file, from the root of the repository. */
  readonly path: string;
  /** How many mutants it gets. */
  readonly count: number;
}

/** `stores/folder` is a folder of the library, `adapters` is a package. Throws if there is no such room. */
export function roomNamed(root: string, name: string, count: number): Room {
  const [first, ...rest] = name.split("/");
  const candidates = [`packages/holdfast/src/${name}`, [`packages/${first}/src`, ...rest].join("/")];
  const path = candidates.find((candidate) => existsSync(join(root, candidate)));
  if (name === "" || path === undefined)
    throw new Error(`There is no room "${name}": neither ${candidates.join(" nor ")} exists.`);
  return { name, path, count };
}

/** A file as a room of its own. Throws if there is no such source file. */
export function roomOfFile(root: string, file: string, count: number): Room {
  const path = relative(root, join(root, file)).split(sep).join("/");
  if (!/^packages\/[^/]+\/src\/.*\.ts$/.test(path) || !existsSync(join(root, path)))
    throw new Error(`"${file}" is not a source file: it should be like packages/holdfast/src/journal/lines/scan.ts.`);
  return { name: path.replace(/^packages\/holdfast\/src\//, ""), path, count };
}

/** `a,b:40` gives a the usual count and b forty. */
export function parseRooms(text: string, count: number): { readonly name: string; readonly count: number }[] {
  return text.split(",").map((part) => {
    const [name = "", own] = part.trim().split(":");
    return { name, count: own === undefined ? count : parseCount(own) };
  });
}

/** `all` is every mutant. Throws if it is neither that nor a number. */
export function parseCount(text: string): number {
  if (text === "all") return Number.POSITIVE_INFINITY;
  if (!/^\d+$/.test(text)) throw new Error(`"${text}" is not a number of mutants: use a whole number, or all.`);
  return Number(text);
}

export function packageOf(path: string): string {
  return path.split("/")[1]!;
}

/** The sources below a folder, or the file itself, by their paths from the root, in order. */
export function sourcesBelow(root: string, path: string): Map<string, string> {
  if (!statSync(join(root, path)).isDirectory()) return new Map([[path, readFileSync(join(root, path), "utf8")]]);
  const names = readdirSync(join(root, path), { recursive: true, encoding: "utf8" });
  const files = names.map((name) => `${path}/${name.split(sep).join("/")}`).filter((file) => isSource(file));
  return new Map(files.sort().map((file) => [file, readFileSync(join(root, file), "utf8")]));
}

function isSource(file: string): boolean {
  return file.endsWith(".ts") && !file.endsWith(".d.ts");
}
