import { dirname, posix } from "node:path";

/** The rooms of the packages, and which imports which, as pure functions of the files' paths and texts. */

export interface Source {
  readonly path: string;
  readonly text: string;
}

/** Edges point from the room that imports to the room that is imported. */
export interface Graph {
  readonly rooms: readonly string[];
  readonly edges: ReadonlyMap<string, ReadonlySet<string>>;
}

const IMPORT = /(?:^|[;\s}])(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/**
 * The room of a source file: the first folder below `src`. A file in `src` itself is a door of its package, not a room.
 * Null for other files.
 */
export function roomOf(path: string): string | null {
  return /^(packages\/[^/]+)\/src\/([^/]+)\/.+\.tsx?$/.exec(path)?.slice(1).join("/") ?? null;
}

/** One package. */
export function graphOf(sources: readonly Source[], packageName: string): Graph {
  const rooms = new Set<string>();
  const edges = new Map<string, Set<string>>();
  for (const { path, text } of sources) {
    const room = roomOf(path);
    if (!room?.startsWith(`packages/${packageName}/`)) continue;
    rooms.add(room);
    for (const [, target] of text.matchAll(IMPORT)) {
      const other = roomOf(posix.join(dirname(path), target!));
      if (other === null || other === room) continue;
      const found = edges.get(room);
      if (found) found.add(other);
      else edges.set(room, new Set([other]));
    }
  }
  return { rooms: [...rooms].sort(), edges };
}

/** The files of one package instead of its rooms. Imports of types count too. */
export function fileGraphOf(sources: readonly Source[], packageName: string): Graph {
  const own = sources.filter(({ path }) => path.startsWith(`packages/${packageName}/src/`));
  const edges = own.map(({ path, text }) => {
    const targets = [...text.matchAll(IMPORT)].map(([, target]) => posix.join(dirname(path), target!));
    return [path, new Set(targets)] as const;
  });
  return { rooms: own.map(({ path }) => path), edges: new Map(edges) };
}

/** A way from a room back to itself, as the rooms on it; null if there is none. */
export function cycleIn({ rooms, edges }: Graph): readonly string[] | null {
  const done = new Set<string>();
  const walk = (room: string, way: readonly string[]): readonly string[] | null => {
    const at = way.indexOf(room);
    if (at >= 0) return [...way.slice(at), room];
    if (done.has(room)) return null;
    for (const other of edges.get(room) ?? []) {
      const cycle = walk(other, [...way, room]);
      if (cycle) return cycle;
    }
    done.add(room);
    return null;
  };
  for (const room of rooms) {
    const cycle = walk(room, []);
    if (cycle) return cycle;
  }
  return null;
}

/** How far each room is above those that import nothing. The graph has no cycle. */
function levelsOf({ rooms, edges }: Graph): Map<string, number> {
  const levels = new Map<string, number>();
  const levelOf = (room: string): number => {
    const known = levels.get(room);
    if (known !== undefined) return known;
    const level = Math.max(-1, ...[...(edges.get(room) ?? [])].map(levelOf)) + 1;
    levels.set(room, level);
    return level;
  };
  for (const room of rooms) levelOf(room);
  return levels;
}

const BOX = { width: 112, height: 28, gapX: 24, gapY: 44, margin: 24, title: 30 };

/** All packages, one below the other. An edge that other edges imply is left out. */
export function drawGraphs(graphs: readonly (readonly [title: string, graph: Graph])[]): string {
  const parts: string[] = [];
  let top = BOX.margin;
  let width = 0;
  for (const [title, graph] of graphs) {
    const drawn = draw(title, graph, top);
    parts.push(drawn.svg);
    top = drawn.bottom + BOX.margin;
    width = Math.max(width, drawn.width);
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}" font-family="sans-serif" font-size="13">`,
    "<title>The rooms of each package: an arrow points to the room that is imported</title>",
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#667"/></marker></defs>',
    `<rect width="${width}" height="${top}" fill="#fff"/>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

function draw(title: string, graph: Graph, top: number): { svg: string; bottom: number; width: number } {
  const levels = levelsOf(graph);
  const highest = Math.max(...levels.values());
  const places = new Map<string, { x: number; y: number }>();
  let width = 0;
  for (let level = highest; level >= 0; level--) {
    const row = graph.rooms.filter((room) => levels.get(room) === level);
    for (const [at, room] of row.entries()) {
      // Every second row is moved aside, so that fewer lines run through boxes.
      const x = BOX.margin + at * (BOX.width + BOX.gapX) + ((highest - level) % 2) * 40;
      places.set(room, { x, y: top + BOX.title + (highest - level) * (BOX.height + BOX.gapY) });
      width = Math.max(width, x + BOX.width + BOX.margin);
    }
  }
  const lines = graph.rooms.flatMap((room) =>
    [...(graph.edges.get(room) ?? [])]
      .filter((other) => !isImplied(graph, room, other))
      .map((other) => {
        const [from, to] = [places.get(room)!, places.get(other)!];
        const [x1, y1, x2, y2] = [from.x + BOX.width / 2, from.y + BOX.height, to.x + BOX.width / 2, to.y];
        const bend = (y2 - y1) / 2;
        return `<path d="M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 2}" fill="none" stroke="#667" marker-end="url(#tip)"/>`;
      }),
  );
  const boxes = [...places].map(([room, { x, y }]) => {
    const name = room.slice(room.lastIndexOf("/") + 1);
    return `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="5" fill="#eef3fb" stroke="#88a"/><text x="${x + BOX.width / 2}" y="${y + 18}" text-anchor="middle">${name}</text>`;
  });
  const heading = `<text x="${BOX.margin}" y="${top + 12}" font-weight="bold">${title}</text>`;
  const bottom = top + BOX.title + highest * (BOX.height + BOX.gapY) + BOX.height;
  return { svg: [heading, ...lines, ...boxes].join("\n"), bottom, width };
}

/** Another room that it imports leads there too. */
function isImplied({ edges }: Graph, from: string, to: string): boolean {
  const reaches = (room: string): boolean => room === to || [...(edges.get(room) ?? [])].some(reaches);
  return [...(edges.get(from) ?? [])].some((other) => other !== to && reaches(other));
}
