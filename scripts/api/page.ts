import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Declarations, type Declared, type Exported, moduleDoc } from "./declarations.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The packages whose interface is public. The command has none. */
const PACKAGES = ["holdfast", "adapters", "postgres", "cloudflare", "server", "acp", "testkit"].map(
  (name) => `packages/${name}`,
);

export interface EntryPoint {
  /** What programs import: `holdfast/store`. */
  readonly name: string;
  readonly file: string;
}

/** What programs may import. The internal entries are for the packages of this repository alone. */
export function entryPoints(): EntryPoint[] {
  return PACKAGES.flatMap((path) => {
    const { name, exports } = JSON.parse(readFileSync(join(ROOT, path, "package.json"), "utf8")) as {
      name: string;
      exports: Record<string, { "holdfast-source": string }>;
    };
    // An internal entry is for the packages of this repository alone.
    return Object.entries(exports)
      .filter(([key]) => !/^\.\/internal(?:\/|$)/.test(key))
      .map(([key, { "holdfast-source": file }]) => ({ name: name + key.slice(1), file: join(ROOT, path, file) }));
  });
}

const KINDS: readonly [kind: Declared["kind"], title: string][] = [
  ["function", "Functions"],
  ["class", "Classes"],
  ["constant", "Constants"],
  ["type", "Types"],
];

/**
 * docs/API.md: the whole public interface, read from the source. `format`: formats declarations, in order; the page
 * then looks like the source.
 */
export function apiPage(format: (declarations: readonly string[]) => string[]): string {
  const declarations = new Declarations();
  const points = entryPoints().map((point) => ({ ...point, exported: declarations.exportsOf(point.file) }));
  const sections = points.map((point) => ({ ...point, inner: innerTypes(point.exported, points, declarations) }));
  const shown = sections.flatMap(({ exported, inner }) => [...exported.values(), ...inner]).filter(isDeclared);
  const formatted = format(shown.map(({ code }) => code));
  const codeOf = new Map(shown.map((one, index) => [one, formatted[index]!]));
  const anchors = new Anchors();
  const parts = ["# API", INTRODUCTION, contents(sections)];
  for (const { name, file, exported, inner } of sections) {
    anchors.take(name);
    const all = [...exported.values()].sort(byName);
    const groups = KINDS.map(([kind, title]) => ({
      title,
      list: all.filter((one) => isDeclared(one) && one.kind === kind),
    }));
    const body: string[] = [];
    const index: string[] = [];
    for (const { title, list } of groups) {
      if (list.length === 0) continue;
      const links = (list as Declared[]).map((one) => {
        body.push(`### ${one.name}`, ...described(one, codeOf.get(one)!));
        return `[${one.name}](#${anchors.take(one.name)})`;
      });
      index.push(`${title}: ${links.join(", ")}.`);
    }
    const foreign = all
      .filter((one) => !isDeclared(one))
      .map((one) => `\`${one.name}\` of \`${(one as { from: string }).from}\``);
    if (foreign.length > 0) index.push(`Passed on: ${foreign.join(", ")}.`);
    if (inner.length > 0) {
      anchors.take("Referred to");
      body.push("### Referred to", "Not exported, but part of the declarations above.");
      for (const one of inner) body.push(...described(one, codeOf.get(one)!));
    }
    parts.push(`## ${name}`, ...paragraphsOf(moduleDoc(file)), ...index, ...body);
  }
  return `${parts.map(wrapped).join("\n\n")}\n`;
}

const INTRODUCTION =
  "The whole public interface, made from the source by `npm run api`. A test fails if the two differ. The " +
  "[guide](guides/adopt-in-an-hour.md) explains how the parts work together, and [ERRORS](ERRORS.md) what each code " +
  "means. Numbers such as P3 are guarantees, defined in [GUARANTEES](GUARANTEES.md); R1, S6 and C34 are rules, defined " +
  "in [RULES](RULES.md).";

function contents(points: readonly EntryPoint[]): string {
  const anchors = new Anchors();
  return points.map(({ name }) => `- [\`${name}\`](#${anchors.take(name)})`).join("\n");
}

function described({ name, declaredAs, doc }: Declared, code: string): string[] {
  const renamed = name === declaredAs ? [] : [`The declarations on this page call it \`${declaredAs}\`.`];
  return [...paragraphsOf(doc), ...renamed, fenced(code)];
}

function paragraphsOf(doc: string): string[] {
  const paragraphs = doc.split(/\n{2,}/).filter((text) => text !== "");
  return paragraphs.map((text) => (text.startsWith("@example ") ? fenced(text.slice(9)) : text));
}

const fenced = (code: string): string => `\`\`\`ts\n${code}\n\`\`\``;

/** The types that the exports refer to, directly or not, and that no entry point exports. */
function innerTypes(
  exported: ReadonlyMap<string, Exported>,
  points: readonly { exported: ReadonlyMap<string, Exported> }[],
  declarations: Declarations,
): Declared[] {
  const keyOf = ({ file, declaredAs }: Declared): string => `${file} ${declaredAs}`;
  const isPublic = new Set(points.flatMap((point) => [...point.exported.values()].filter(isDeclared).map(keyOf)));
  const found = new Map<string, Declared>();
  const visit = ({ refers }: Declared): void => {
    for (const { file, name } of refers) {
      const one = declarations.find(file, name);
      if (one?.kind !== "type" || isPublic.has(keyOf(one)) || found.has(keyOf(one))) continue;
      found.set(keyOf(one), one);
      visit(one);
    }
  };
  for (const one of exported.values()) if (isDeclared(one)) visit(one);
  return [...found.values()].sort(byName);
}

function byName(a: Exported, b: Exported): number {
  const [first, second] = [a.name.toLowerCase(), b.name.toLowerCase()];
  return first === second ? (a.name < b.name ? -1 : 1) : first < second ? -1 : 1;
}

const isDeclared = (one: Exported): one is Declared => "code" in one;

/** The anchors that GitHub gives to headings, in the order of the page. */
class Anchors {
  readonly #taken = new Map<string, number>();

  take(heading: string): string {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    const count = this.#taken.get(anchor) ?? 0;
    this.#taken.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  }
}

const COLUMNS = 120;

/** Wraps a paragraph; code and lists stay as they are. */
function wrapped(part: string): string {
  if (/^(?:```|- |#)/.test(part)) return part;
  const lines: string[] = [];
  let line = "";
  for (const word of part.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
