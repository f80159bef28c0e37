import type { Random } from "../../../testkit/src/simulation/random.ts";

/** Changes to the bytes and to the JSON of a session file, of which nobody says what damage they are. */

const LF = Buffer.from("\n");
const TOKENS = [
  ...['{"', '"}', "}", "{", "[", "]", '"', "\\", "\\u", "\\ud800", ",", ":", "null", "\r\n", "\n", "\n\n", "\r", "\t"],
  ...["\0", "\0\0\0\0\0\0\0\0", "\u2028", "\u2029", "\ufeff", "\u0085", "é", "😀", '{"type":"', '{"id":"', '":{"'],
  ...["<<<<<<< HEAD\n", "}{", "}\n{", "1e400", "-0", "__proto__", '"constructor":{},', "\u001b[31m", "}}}}}}", "]]]]"],
].map((text) => Buffer.from(text));
const VALUES: readonly unknown[] = [
  ...[null, true, 0, -1, 1e308, 2 ** 53, "", "x", "\ud800", "\0", "a\nb", "\u2028", "__proto__", "toString", [], {}],
  ...[
    [null],
    [[]],
    { type: "text" },
    { type: "text", text: null },
    { text: "t" },
    { id: null },
    [{ type: "tool_use" }],
  ],
  ...["2026-13-45T99:99:99Z", "9".repeat(400), "{}", "{", '{"a":1}', ["a", 1, null, { b: [] }]],
];

/** One change to the lines of a file. `others`: lines of all agents. */
export function mutateLines(lines: readonly Buffer[], others: readonly Buffer[], random: Random): Buffer[] {
  const at = random.below(Math.max(1, lines.length));
  const line = lines[at];
  if (line === undefined) return [random.pick(others)];
  switch (random.below(12)) {
    case 0:
      return lines.toSpliced(at, 1);
    case 1:
      return lines.toSpliced(at, 0, line);
    case 2:
      return lines.toSpliced(random.below(lines.length), 0, ...lines.slice(at));
    case 3:
      return lines.toSpliced(at, 1).toSpliced(random.below(lines.length), 0, line);
    case 4:
      return lines.toSpliced(at, 2, Buffer.concat([line, lines[at + 1] ?? LF]));
    case 5:
      return lines.toSpliced(at, 0, random.pick(others));
    case 6: {
      const cut = random.below(line.length + 1);
      return lines.toSpliced(at, 1, line.subarray(0, cut), line.subarray(cut));
    }
    case 7:
      return lines.toSpliced(at, 1, line.subarray(0, random.below(line.length + 1)));
    case 8:
      return lines.toSpliced(at, 2, Buffer.concat([line.subarray(0, random.below(line.length)), lines[at + 1] ?? LF]));
    default:
      return lines.toSpliced(at, 1, mutateJson(line, random));
  }
}

/** Another value somewhere in a record, or a field less or more. The line stays JSON. */
function mutateJson(line: Buffer, random: Random): Buffer {
  let root: unknown;
  try {
    root = JSON.parse(line.toString("utf8"));
  } catch {
    return mutateBytes(line, random);
  }
  let holder = root;
  for (;;) {
    if (typeof holder !== "object" || holder === null) return Buffer.from(JSON.stringify(random.pick(VALUES)));
    const inner = Object.values(holder).filter((value) => typeof value === "object" && value !== null);
    if (inner.length === 0 || random.chance(0.3)) break;
    holder = random.pick(inner);
  }
  const fields = holder as Record<string, unknown>;
  const keys = Object.keys(fields);
  if (keys.length === 0) return mutateBytes(line, random);
  const key = random.pick(keys);
  const other = random.pick(keys);
  switch (random.below(5)) {
    case 0:
      delete fields[key];
      break;
    case 1:
      fields[key] = fields[other];
      break;
    case 2:
      fields[`${key}${random.pick(["", "2", "__proto__"])}`] = nested(random);
      break;
    default:
      fields[key] = random.pick(VALUES);
  }
  return Buffer.from(JSON.stringify(root));
}

function nested(random: Random): unknown {
  let value = random.pick(VALUES);
  for (let depth = random.below(random.chance(0.02) ? 3_000 : 8); depth > 0; depth--)
    value = random.chance(0.5) ? [value] : { a: value };
  return value;
}

/** One change to bytes. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1);
  const length = Math.min(bytes.length - at, random.below(random.chance(0.2) ? 2_000 : 12));
  const before = bytes.subarray(0, at);
  switch (random.below(8)) {
    case 0: {
      const changed = Buffer.from(bytes);
      if (at < changed.length) changed[at] = changed[at]! ^ (1 << random.below(8));
      return changed;
    }
    case 1:
      return Buffer.concat([before, bytes.subarray(at + length)]);
    case 2:
      return Buffer.concat([before, randomBytes(random, length), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([before, Buffer.alloc(length), bytes.subarray(at + length)]);
    case 4:
      return Buffer.concat([before, bytes.subarray(at, at + length), bytes.subarray(at)]);
    case 5:
      return before;
    case 6:
      return bytes.subarray(at);
    default:
      return Buffer.concat([before, random.pick(TOKENS), bytes.subarray(at)]);
  }
}

const randomBytes = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => random.below(256)));

/** Bytes of no agent. */
export function garbage(random: Random): Buffer {
  const count = random.below(60);
  if (random.chance(0.3)) return randomBytes(random, count * 10);
  if (random.chance(0.5)) return Buffer.concat(Array.from({ length: count }, () => random.pick(TOKENS)));
  const lines = Array.from({ length: count }, () => Buffer.from(`${JSON.stringify(nested(random))}\n`));
  return Buffer.concat(lines);
}

/** A few hundred kilobytes in which a reader could look again and again at what it has seen. */
export function tedious(random: Random, line: Buffer): Buffer {
  const half = line.subarray(0, random.below(line.length + 1));
  const part = random.pick([...TOKENS, half, Buffer.concat([half, LF]), Buffer.concat([line, LF]), half.subarray(-9)]);
  const mixed = random.chance(0.5) ? Buffer.concat([part, random.pick(TOKENS)]) : part;
  const bytes = 50_000 + random.below(400_000);
  return Buffer.alloc(bytes, mixed.length > 0 ? mixed : LF);
}
