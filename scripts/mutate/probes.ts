import { isNode, parse, type SyntaxNode, walk } from "./syntax.ts";

/** A stretch of a source that cannot run without its probe being hit. */
export interface Probe {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

export interface Probed {
  readonly text: string;
  /** The first is hit when the module is loaded, and stands for all that runs then. */
  readonly probes: readonly Probe[];
}

interface Insertion {
  readonly at: number;
  /** At one place, what closes comes before what opens; the innermost closes first, and opens last. */
  readonly order: number;
  readonly text: string;
}

const CALL = "__mutateProbe";

/** The source with a call in every block, so that a run can tell which blocks it has entered. No line moves. */
export function insertProbes(file: string, text: string, firstNumber: number, runtime: string): Probed {
  const { program } = parse(file, text);
  const probes: Probe[] = [];
  const insertions: Insertion[] = [];
  const add = ({ start, end }: SyntaxNode): string => {
    const number = firstNumber + probes.length;
    probes.push({ number, start, end });
    return `${CALL}(${number})`;
  };
  const insert = (at: number, inserted: string): void => {
    insertions.push({ at, order: insertions.length + 1, text: inserted });
  };
  const wrap = ({ start, end }: SyntaxNode, open: string, close: string): void => {
    insert(start, open);
    insertions.push({ at: end, order: -insertions.length, text: close });
  };

  const whole = { ...program, start: 0, end: text.length };
  const head = `import { probe as ${CALL} } from ${JSON.stringify(runtime)}; ${add(whole)}; `;
  const firstLine = text.startsWith("#!") ? text.indexOf("\n") + 1 : 0;
  insertions.push({ at: firstLine, order: 0, text: head });

  walk(program, (node, ancestors) => {
    const parent = ancestors.at(-1);
    const { type, body } = node;
    if (type === "BlockStatement") insert(node.start + 1, `${add(isFunction(parent) ? parent! : node)};`);
    if (type === "ArrowFunctionExpression" && isNode(body) && body.type !== "BlockStatement")
      wrap(body, `(${add(node)}, `, ")");
    if (isBranch(node, parent)) wrap(node, `{${add(node)};`, "}");
    if (type === "SwitchCase" && Array.isArray(node["consequent"])) {
      const first: unknown = node["consequent"][0];
      if (isNode(first)) insert(first.start, `${add({ ...node, start: first.start })};`);
    }
    if (type === "PropertyDefinition" && node["static"] === false && isNode(node["value"]))
      wrap(node["value"], `(${add(node["value"])}, `, ")");
  });

  insertions.sort((a, b) => a.at - b.at || a.order - b.order);
  let result = "";
  let copied = 0;
  for (const { at, text: inserted } of insertions) {
    result += text.slice(copied, at) + inserted;
    copied = at;
  }
  return { text: result + text.slice(copied), probes };
}

/** The innermost stretch around a change. A test that does not hit its probe cannot see the change. */
export function probeAround(probes: readonly Probe[], start: number, end: number): Probe {
  let best = probes[0]!;
  for (const probe of probes)
    if (probe.start <= start && end <= probe.end && probe.end - probe.start <= best.end - best.start) best = probe;
  return best;
}

function isFunction(node: SyntaxNode | undefined): boolean {
  return node !== undefined && /Function/.test(node.type);
}

/** A statement that is the branch of an `if` or the body of a loop, without braces. */
function isBranch(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (parent === undefined || node.type === "BlockStatement" || !/Statement$/.test(parent.type)) return false;
  return parent["consequent"] === node || parent["alternate"] === node || parent["body"] === node;
}
