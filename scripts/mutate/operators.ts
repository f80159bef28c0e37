import { bare, isNode, type Source, type SyntaxNode } from "./syntax.ts";

/** One way to change a source: the text between two places is replaced. */
export interface Edit {
  readonly operator: Operator;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * What each operator does, and how often it is drawn. The weights resemble the faults that people make and reviews
 * miss: most are conditions, forgotten calls and awaits, and bounds.
 */
export const OPERATORS = {
  negate: { weight: 24, does: "negates a condition" },
  logic: { weight: 10, does: "replaces && by ||, or || by &&" },
  await: { weight: 10, does: "removes an await" },
  call: { weight: 18, does: "removes a call that is a statement of its own" },
  bound: { weight: 14, does: "moves a comparison or a number by one" },
  default: { weight: 10, does: "drops a default: `?? x` or `= x`" },
  exit: { weight: 6, does: "removes an early return, continue, break or throw" },
  literal: { weight: 6, does: "empties a string, an array or an object, or flips true and false" },
  spread: { weight: 3, does: "spreads nothing" },
} as const;

export type Operator = keyof typeof OPERATORS;

/** Every way to change a node by itself. Each result is valid syntax in place of the node, if the node was. */
export function editsOf(node: SyntaxNode, ancestors: readonly SyntaxNode[], source: Source): Edit[] {
  if (isProse(ancestors)) return [];
  const parent = ancestors.at(-1);
  return [
    ...negate(node, parent, source),
    ...replaceLogic(node, source),
    ...removeAwait(node, ancestors),
    ...removeCall(node),
    ...moveBound(node, parent, source),
    ...dropDefault(node, source),
    ...removeExit(node, ancestors),
    ...emptyLiteral(node, parent),
    ...emptySpread(node, parent),
  ];
}

const OPPOSITE: Readonly<Record<string, string>> = {
  "===": "!==",
  "!==": "===",
  "==": "!=",
  "!=": "==",
  "<": ">=",
  ">=": "<",
  ">": "<=",
  "<=": ">",
};

const CONDITIONAL = new Set([
  "IfStatement",
  "ConditionalExpression",
  "WhileStatement",
  "DoWhileStatement",
  "ForStatement",
]);

function negate(node: SyntaxNode, parent: SyntaxNode | undefined, source: Source): Edit[] {
  if (node.type === "BinaryExpression") {
    const opposite = OPPOSITE[String(node["operator"])];
    if (opposite !== undefined) return [replaceOperator("negate", node, opposite, source)];
  }
  if (node.type === "UnaryExpression" && node["operator"] === "!")
    return [{ operator: "negate", start: node.start, end: node.start + 1, text: "" }];
  if (parent === undefined || !CONDITIONAL.has(parent.type) || parent["test"] !== node) return [];
  // An endless loop that never begins is not what anybody writes by mistake.
  if (node.type === "Literal") return [];
  return [
    { operator: "negate", start: node.start, end: node.end, text: `!(${source.text.slice(node.start, node.end)})` },
  ];
}

function replaceLogic(node: SyntaxNode, source: Source): Edit[] {
  if (node.type !== "LogicalExpression" || node["operator"] === "??") return [];
  return [replaceOperator("logic", node, node["operator"] === "&&" ? "||" : "&&", source)];
}

function removeAwait(node: SyntaxNode, ancestors: readonly SyntaxNode[]): Edit[] {
  if (node.type !== "AwaitExpression") return [];
  // A promise that is returned is awaited by the caller, unless a `try` or a `using` waits for its end.
  const isReturned = ancestors.at(-1)?.type === "ReturnStatement";
  if (isReturned && !ancestors.some(({ type }) => type === "TryStatement")) return [];
  return [{ operator: "await", start: node.start, end: argumentOf(node).start, text: "" }];
}

function removeCall(node: SyntaxNode): Edit[] {
  if (node.type !== "ExpressionStatement" || !isNode(node["expression"])) return [];
  let called = bare(node["expression"]);
  if (called.type === "AwaitExpression" || (called.type === "UnaryExpression" && called["operator"] === "void"))
    called = bare(argumentOf(called));
  if (called.type === "ChainExpression" && isNode(called["expression"])) called = called["expression"];
  if (called.type !== "CallExpression") return [];
  if (isNode(called["callee"]) && called["callee"].type === "Super") return [];
  return [{ operator: "call", start: node.start, end: node.end, text: ";" }];
}

const WIDER: Readonly<Record<string, string>> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };

function moveBound(node: SyntaxNode, parent: SyntaxNode | undefined, source: Source): Edit[] {
  if (node.type === "BinaryExpression") {
    const wider = WIDER[String(node["operator"])];
    return wider === undefined ? [] : [replaceOperator("bound", node, wider, source)];
  }
  if (node.type !== "Literal" || isKey(node, parent)) return [];
  const { value } = node;
  const change = (text: string): Edit => ({ operator: "bound", start: node.start, end: node.end, text });
  if (typeof value === "bigint") return [change(`${value + 1n}n`)];
  if (typeof value !== "number") return [];
  const near = value >= 1 ? [value + 1, value - 1] : [value + 1];
  return near.map((number) => change(inBaseOf(String(node["raw"]), number)));
}

function inBaseOf(raw: string, number: number): string {
  const prefix = /^0[xob]/i.exec(raw)?.[0];
  if (prefix === undefined) return String(number);
  return `${prefix}${number.toString({ x: 16, o: 8, b: 2 }[prefix[1]!.toLowerCase() as "x" | "o" | "b"])}`;
}

function dropDefault(node: SyntaxNode, source: Source): Edit[] {
  const { left, right } = node;
  if (!isNode(left) || !isNode(right)) return [];
  if (node.type === "AssignmentPattern") {
    const annotation = left["typeAnnotation"];
    if (left.type !== "Identifier" || !isNode(annotation))
      return [{ operator: "default", start: left.end, end: right.end, text: "" }];
    // A parameter without a default may not follow an optional one, so it becomes optional too.
    const text = `?${source.text.slice(annotation.start, annotation.end)}`;
    return [{ operator: "default", start: annotation.start, end: right.end, text }];
  }
  if (node.type !== "LogicalExpression" || node["operator"] !== "??") return [];
  if (source.text.slice(right.start, right.end) === "undefined") return [];
  return [{ operator: "default", start: left.end, end: right.end, text: "" }];
}

const EXITS = new Set(["ReturnStatement", "ContinueStatement", "BreakStatement", "ThrowStatement"]);

/** An exit is early if it is inside an `if`, alone or as the last statement of its block. */
function removeExit(node: SyntaxNode, ancestors: readonly SyntaxNode[]): Edit[] {
  if (!EXITS.has(node.type)) return [];
  const parent = ancestors.at(-1);
  const around = parent?.type === "BlockStatement" ? ancestors.at(-2) : parent;
  if (around?.type !== "IfStatement") return [];
  return [{ operator: "exit", start: node.start, end: node.end, text: ";" }];
}

function emptyLiteral(node: SyntaxNode, parent: SyntaxNode | undefined): Edit[] {
  const change = (text: string): Edit[] => [{ operator: "literal", start: node.start, end: node.end, text }];
  const { type, value } = node;
  if (type === "ArrayExpression" && hasMembers(node["elements"])) return change("[]");
  if (type === "ObjectExpression" && hasMembers(node["properties"])) return change("{}");
  if (type !== "Literal" || isKey(node, parent) || isFixedString(parent)) return [];
  if (typeof value === "boolean") return change(String(!value));
  // A string with a space in it is prose or SQL: without the one nothing is lost, and without the other nothing works
  // at all.
  return typeof value === "string" && value !== "" && !/\s/.test(value) ? change('""') : [];
}

/** An empty spread, and not none, so that no comma is left over. */
function emptySpread(node: SyntaxNode, parent: SyntaxNode | undefined): Edit[] {
  if (node.type !== "SpreadElement") return [];
  const { start, end } = argumentOf(node);
  return [{ operator: "spread", start, end, text: parent?.type === "ObjectExpression" ? "{}" : "[]" }];
}

/** Inside the text of a message. A change there is seen by people only. SQL is not prose. */
function isProse(ancestors: readonly SyntaxNode[]): boolean {
  return ancestors.some(({ type, quasis }) => {
    if (type !== "TemplateLiteral" || !Array.isArray(quasis)) return false;
    const words = quasis.map((quasi) => String((quasi as { value: { raw: string } }).value.raw)).join("x");
    return /[a-z] [a-z]/i.test(words) && !/\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|WHERE)\b/.test(words);
  });
}

/** Names of properties, and the sources of imports and exports. */
function isKey(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  return parent !== undefined && (parent["key"] === node || parent["source"] === node);
}

/** Directives and the names in `import { "x" as y }`. */
function isFixedString(parent: SyntaxNode | undefined): boolean {
  return typeof parent?.["directive"] === "string" || /^(?:Import|Export).*Specifier$/.test(parent?.type ?? "");
}

function hasMembers(members: unknown): boolean {
  return Array.isArray(members) && members.length > 0;
}

function argumentOf(node: SyntaxNode): SyntaxNode {
  const argument = node["argument"];
  if (!isNode(argument)) throw new TypeError(`${node.type} without an argument`);
  return argument;
}

function replaceOperator(operator: Operator, node: SyntaxNode, replacement: string, source: Source): Edit {
  const { left, right } = node;
  if (!isNode(left) || !isNode(right)) throw new TypeError(`${node.type} without operands`);
  const token = String(node["operator"]);
  let start = source.text.indexOf(token, left.end);
  for (const comment of source.comments)
    if (comment.start <= start && start < comment.end) start = source.text.indexOf(token, comment.end);
  return { operator, start, end: start + token.length, text: replacement };
}
