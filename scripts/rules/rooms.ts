/**
 * Which rooms of a package may import which. A room is a folder without its sub-folders, a file at the top, or another
 * file that the table names, such as the entry of a folder, which imports the sub-folders that import the folder.
 */
export interface PackageRooms {
  /** The folder of its sources, with a slash at the end. */
  readonly sources: string;
  /** Files at the top that every room may import, and that import only each other. */
  readonly base: readonly string[];
  /** What each room may import besides itself and the base. */
  readonly rooms: Readonly<Record<string, readonly string[]>>;
}

export const ROOM_FILES_MAX = 16;
export const ROOM_LINES_MAX = 2500;

/** `screen/lines/markdown.ts` is in `screen/lines/`; `main.ts` is a room of its own. */
export function roomOf(path: string): string {
  const end = path.lastIndexOf("/");
  return end < 0 ? path : path.slice(0, end + 1);
}

/** What is wrong with this import, in words; null if nothing is. Both paths are below `sources`. */
export function checkImport({ base, rooms }: PackageRooms, from: string, to: string): string | null {
  const [here, there] = [from, to].map((path) => (path in rooms ? path : roomOf(path))) as [string, string];
  const below = base.includes(here) ? [] : rooms[here];
  if (!below) return `${here} is in no table of rooms: say in scripts/rules/ what it may import`;
  if (here === there || base.includes(there)) return null;
  if (base.includes(here)) return `${from} may import only ${base.join(", ")}: every room may import it`;
  return below.includes(there) ? null : `${from} may not import ${to}: a lower layer never imports a higher one`;
}

/** Rooms with too many files or lines to find one's way in. `lines`: by path from the root of the repository. */
export function findLargeRooms(sources: string, lines: ReadonlyMap<string, number>): { room: string; rule: string }[] {
  const sizes = new Map<string, { files: number; lines: number }>();
  for (const [path, count] of lines) {
    if (!path.startsWith(sources)) continue;
    const room = roomOf(path.slice(sources.length));
    const size = sizes.get(room) ?? { files: 0, lines: 0 };
    sizes.set(room, { files: size.files + 1, lines: size.lines + count });
  }
  return [...sizes]
    .filter(([, size]) => size.files > ROOM_FILES_MAX || size.lines > ROOM_LINES_MAX)
    .map(([room, size]) => ({
      room,
      rule: `a room has at most ${ROOM_FILES_MAX} files and ${ROOM_LINES_MAX} lines; this one has ${size.files} and ${size.lines}: split it by purpose`,
    }));
}

/** The rooms of a table that import each other in a circle, in order; null if there are none. */
export function findCycle({ rooms }: PackageRooms): string[] | null {
  const done = new Set<string>();
  const visit = (room: string, way: readonly string[]): string[] | null => {
    if (way.includes(room)) return [...way.slice(way.indexOf(room)), room];
    if (done.has(room)) return null;
    for (const below of rooms[room] ?? []) {
      const cycle = visit(below, [...way, room]);
      if (cycle) return cycle;
    }
    done.add(room);
    return null;
  };
  for (const room of Object.keys(rooms)) {
    const cycle = visit(room, []);
    if (cycle) return cycle;
  }
  return null;
}
