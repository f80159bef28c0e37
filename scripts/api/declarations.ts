import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isolatedDeclarationSync } from "rolldown/experimental";
import { parseSync } from "rolldown/utils";

/** What a name means: its declarations (a function may be overloaded), without comments and `export declare`. */
export interface Declared {
  readonly name: string;
  /** Its name where it is declared, and in other declarations. */
  readonly declaredAs: string;
  readonly file: string;
  readonly kind: "function" | "class" | "constant" | "type";
  /** The text of its TSDoc. */
  readonly doc: string;
  readonly code: string;
  /** The types that it refers to, each with a module that knows the name. Type parameters are among them. */
  readonly refers: readonly { readonly file: string; readonly name: string }[];
}

/** A name that another package exports. */
export interface Foreign {
  readonly name: string;
  readonly from: string;
}

export type Exported = Declared | Foreign;

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

interface Module {
  readonly text: string;
  /** Interfaces and type aliases as the source has them: that is how somebody formatted them. */
  readonly types: ReadonlyMap<string, string>;
  /** Names with a type that only the compiler can infer. It is `unknown` here. */
  readonly untyped: ReadonlySet<string>;
  readonly comments: readonly { readonly start: number; readonly end: number; readonly value: string }[];
  readonly locals: ReadonlyMap<string, readonly Node[]>;
  /** What is imported or passed on: by its name here, the module it comes from and its name there (`*`: all of it). */
  readonly imports: ReadonlyMap<string, { readonly source: string; readonly name: string }>;
  readonly exports: ReadonlyMap<string, { readonly source: string | null; readonly name: string }>;
  /** Modules of which everything is exported. */
  readonly all: readonly string[];
}

/** Reads the declarations of TypeScript modules from their source. */
export class Declarations {
  readonly #modules = new Map<string, Module>();

  /** What the module exports, by its name. */
  exportsOf(file: string): Map<string, Exported> {
    const module = this.#module(file);
    const found = new Map<string, Exported>();
    for (const source of module.all)
      for (const [name, one] of this.exportsOf(resolve(dirname(file), source))) found.set(name, one);
    for (const name of module.exports.keys()) found.set(name, { ...this.#exported(file, name), name });
    return found;
  }

  /** What the name means in the module, exported or not. Null if it is no declaration of this repository. */
  find(file: string, name: string): Declared | null {
    const module = this.#module(file);
    const nodes = module.locals.get(name);
    if (nodes) return this.#declared(file, name, nodes);
    const imported = module.imports.get(name);
    if (!imported?.source.startsWith(".")) return null;
    const found = this.#exported(resolve(dirname(file), imported.source), imported.name);
    return "from" in found ? null : found;
  }

  #exported(file: string, name: string): Exported {
    const module = this.#module(file);
    const exported = module.exports.get(name);
    if (exported?.source?.startsWith("."))
      return this.#exported(resolve(dirname(file), exported.source), exported.name);
    if (exported?.source) return { name: exported.name, from: exported.source };
    if (exported) {
      const found = this.find(file, exported.name);
      if (found) return found;
      const imported = module.imports.get(exported.name);
      if (imported) return { name: imported.name, from: imported.source };
    }
    for (const source of module.all) {
      const inner = this.exportsOf(resolve(dirname(file), source)).get(name);
      if (inner) return inner;
    }
    throw new Error(`${file} does not export ${name}`);
  }

  #declared(file: string, name: string, nodes: readonly Node[]): Declared {
    const module = this.#module(file);
    const { text, comments, imports } = module;
    const before = comments.findLast(({ end }) => end <= nodes[0]!.start);
    const isDoc = before?.value.startsWith("*") === true && isBlank(text.slice(before.end, nodes[0]!.start));
    const declarations = nodes.map((node) => (node["declaration"] as Node | null) ?? node);
    let code = module.types.get(name) ?? nodes.map((node) => text.slice(node.start, node.end)).join("\n");
    code = code.replaceAll(/^\s*(?:#private;|\/\/ biome-ignore .*)\n/gm, "");
    for (const [local, { name: all, source }] of imports) {
      if (all === "*" && source.startsWith(".")) code = code.replaceAll(new RegExp(`\\b${local}\\.(?=[A-Z])`, "g"), "");
    }
    if (module.untyped.has(name)) {
      // What the compiler infers of them says less than the document that is made from them.
      if (!isSchema(file)) throw new Error(`${file}: ${name} has a type that is inferred: write it down`);
      code = `const ${name}: /* Zod schemas: openapi.json shows what they describe. */ object;`;
    }
    const refers = declarations.flatMap(referencesIn).map(([first, second]) => {
      const space = imports.get(first!);
      return space?.name === "*" && second && space.source.startsWith(".")
        ? { file: resolve(dirname(file), space.source), name: second }
        : { file, name: first! };
    });
    const doc = isDoc ? proseOf(before!.value) : "";
    const about = { file, kind: kindOf(declarations[0]!), doc: doc === moduleDoc(file) ? "" : doc };
    return { name, declaredAs: name, ...about, code, refers };
  }

  #module(file: string): Module {
    const known = this.#modules.get(file);
    if (known) return known;
    const source = readFileSync(file, "utf8");
    const { code: text, errors } = isolatedDeclarationSync(file, source);
    const { program, comments } = parseSync(file.replace(/\.tsx?$/, ".d.ts"), text);
    const labels = errors.flatMap((error) => error.labels);
    const written = namesIn(parseSync(file, source).program.body as unknown as Node[]).locals;
    const module = {
      ...{ text, comments, types: typesIn(source, written), ...namesIn(program.body as unknown as Node[]) },
      untyped: new Set([...written].filter(([, nodes]) => labels.some(isWithin(nodes))).map(([name]) => name)),
    };
    this.#modules.set(file, module);
    return module;
  }
}

/** The comment at the top of a module, if it is about the module. */
export function moduleDoc(file: string): string {
  const [, comment] = /^\/\*(\*[\s\S]*?)\*\/\n\n/.exec(readFileSync(file, "utf8")) ?? [];
  return comment === undefined ? "" : proseOf(comment);
}

function namesIn(body: readonly Node[]): Pick<Module, "locals" | "imports" | "exports" | "all"> {
  const locals = new Map<string, Node[]>();
  const imports = new Map<string, { source: string; name: string }>();
  const exports = new Map<string, { source: string | null; name: string }>();
  const all: string[] = [];
  for (const node of body) {
    const source = (node["source"] as { value: string } | null | undefined)?.value ?? null;
    if (node.type === "ExportAllDeclaration") all.push(source!);
    for (const each of (node["specifiers"] as Node[] | undefined) ?? []) {
      const [local, exported, imported] = ["local", "exported", "imported"].map((key) => nameOf(each[key]));
      if (node.type === "ImportDeclaration") {
        const name = each.type === "ImportNamespaceSpecifier" ? "*" : (imported ?? "default");
        imports.set(local!, { source: source!, name });
      } else exports.set(exported!, { source, name: local! });
    }
    const declaration = node.type === "ExportNamedDeclaration" ? (node["declaration"] as Node | null) : node;
    if (!declaration) continue;
    const declarators = declaration["declarations"] as { id: unknown }[] | undefined;
    for (const id of declarators ? declarators.map((one) => one.id) : [declaration["id"]]) {
      const name = nameOf(id);
      if (name === null) continue;
      locals.set(name, [...(locals.get(name) ?? []), node]);
      if (declaration !== node) exports.set(name, { source: null, name });
    }
  }
  return { locals, imports, exports, all };
}

function typesIn(source: string, locals: ReadonlyMap<string, readonly Node[]>): Map<string, string> {
  const declarations = [...locals].map(
    ([name, [node]]) => [name, (node!["declaration"] as Node | null) ?? node!] as const,
  );
  return new Map(
    declarations
      .filter(([, { type }]) => type === "TSInterfaceDeclaration" || type === "TSTypeAliasDeclaration")
      .map(([name, { start, end }]) => [name, source.slice(start, end)]),
  );
}

const isWithin =
  (nodes: readonly Node[]) =>
  (label: { start: number; end: number }): boolean =>
    nodes.some(({ start, end }) => start <= label.start && label.end <= end);

function nameOf(node: unknown): string | null {
  const { name, value } = (node ?? {}) as { name?: string; value?: string };
  return name ?? value ?? null;
}

function kindOf({ type }: Node): Declared["kind"] {
  if (type.includes("Function")) return "function";
  if (type === "ClassDeclaration") return "class";
  return type === "VariableDeclaration" ? "constant" : "type";
}

/** The types that a declaration refers to, each as the names in its path. */
function referencesIn(node: Node): string[][] {
  const found: string[][] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    const one = value as Node;
    const named = one["typeName"] ?? one["superClass"] ?? (one.type?.includes("Heritage") ? one["expression"] : null);
    if (named) found.push(pathOf(named as Node));
    if (one.type === "TSClassImplements") found.push(pathOf(one["expression"] as Node));
    for (const [key, inner] of Object.entries(one)) if (key !== "type") visit(inner);
  };
  visit(node);
  return found.filter((path) => path.length > 0);
}

function pathOf(node: Node): string[] {
  if (node.type === "Identifier") return [node["name"] as string];
  if (node.type === "TSQualifiedName") return [...pathOf(node["left"] as Node), ...pathOf(node["right"] as Node)];
  return [];
}

const isSchema = (file: string): boolean => file.replaceAll("\\", "/").includes("/src/schemas/");

const isBlank = (text: string): boolean => text.trim() === "";

/** The text of a comment without its stars. */
function proseOf(comment: string): string {
  return comment
    .replace(/^\*/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\*? ?/, "").trimEnd())
    .join("\n")
    .trim();
}
