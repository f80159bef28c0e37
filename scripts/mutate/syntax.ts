import { parseSync } from "rolldown/utils";

/** A node of the syntax tree, as ESTree names them, with parentheses kept as nodes of their own. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

export interface Source {
  readonly text: string;
  readonly program: SyntaxNode;
  readonly comments: readonly { readonly start: number; readonly end: number }[];
}

/** Throws if the text is not valid TypeScript. */
export function parse(file: string, text: string): Source {
  const { program, comments, errors } = parseSync(file, text);
  const [error] = errors;
  if (error) throw new SyntaxError(`${file}: ${error.message}`);
  return { text, program: program as unknown as SyntaxNode, comments };
}

/**
 * Calls `visit` with every node that exists at run time, outermost first. Types and declarations of types are left out.
 */
export function walk(
  node: SyntaxNode,
  visit: (node: SyntaxNode, ancestors: readonly SyntaxNode[]) => void,
  ancestors: readonly SyntaxNode[] = [],
): void {
  visit(node, ancestors);
  const inside = [...ancestors, node];
  for (const child of childrenOf(node)) walk(child, visit, inside);
}

function* childrenOf(node: SyntaxNode): Iterable<SyntaxNode> {
  for (const [property, value] of Object.entries(node)) {
    // A shorthand property has one name that is key and value at once.
    if (property === "key" && node["shorthand"] === true) continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child) && existsAtRunTime(child)) yield child;
    }
  }
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

const EXPRESSIONS_WITH_TYPES = new Set([
  "TSAsExpression",
  "TSSatisfiesExpression",
  "TSNonNullExpression",
  "TSTypeAssertion",
  "TSInstantiationExpression",
]);

function existsAtRunTime(node: SyntaxNode): boolean {
  if (node["declare"] === true) return false;
  return !node.type.startsWith("TS") || EXPRESSIONS_WITH_TYPES.has(node.type);
}

/** The expression inside parentheses, casts and `!`. */
export function bare(node: SyntaxNode): SyntaxNode {
  const inner = node["expression"];
  const isWrapper = node.type === "ParenthesizedExpression" || EXPRESSIONS_WITH_TYPES.has(node.type);
  return isWrapper && isNode(inner) ? bare(inner) : node;
}

/**
 * The names of the classes and functions around a place, such as `FolderJournal.append`; empty at the top of a module.
 */
export function enclosingName(ancestors: readonly SyntaxNode[]): string {
  return ancestors.flatMap((node) => nameOf(node) ?? []).join(".");
}

const NAMED = new Set([
  "FunctionDeclaration",
  "ClassDeclaration",
  "MethodDefinition",
  "PropertyDefinition",
  "VariableDeclarator",
  "Property",
]);

function nameOf(node: SyntaxNode): string | null {
  if (!NAMED.has(node.type)) return null;
  const name = node["id"] ?? node["key"];
  if (!isNode(name) || typeof name["name"] !== "string") return null;
  return name.type === "PrivateIdentifier" ? `#${name["name"]}` : name["name"];
}
