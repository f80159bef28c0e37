import { type Profiler, Session } from "node:inspector/promises";

const session = new Session();
/**
 * From the beginning on: V8 counts the blocks of a function only if it counted when the function was compiled, which is
 * when it is first called.
 */
const isCounting = (async () => {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
})();

/**
 * How many steps a piece of work takes: how often V8 entered a function or a block of our source (its own counts, exact
 * and the same on every machine), and how many items the methods of arrays that look at items by themselves went over.
 * No clock is asked.
 */
export async function stepsOf(run: () => unknown): Promise<number> {
  await isCounting;
  // Answers the counts so far, and starts over.
  await session.post("Profiler.takePreciseCoverage");
  let items = 0;
  const restore = Object.entries(METHODS).map(([name, looked]) => {
    // biome-ignore lint/suspicious/noExplicitAny: any method of arrays.
    const methods = Array.prototype as any;
    const method = methods[name] as (...args: unknown[]) => unknown;
    methods[name] = function counted(this: unknown[], ...args: unknown[]) {
      const { length } = this;
      const answer = method.apply(this, args);
      items += looked(length, answer, args[0]);
      return answer;
    };
    return () => {
      methods[name] = method;
    };
  });
  try {
    run();
  } finally {
    for (const put of restore) put();
  }
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return items + result.reduce((sum, script) => sum + entered(script), 0);
}

type Looked = (length: number, answer: unknown, first: unknown) => number;

const found: Looked = (length, answer) => (Number(answer) < 0 ? length : Number(answer) + 1);
const all: Looked = (length) => length;

/** How many items each of them looks at or moves. */
const METHODS: Readonly<Record<string, Looked>> = {
  includes: (length, answer) => (answer === true ? 1 : length),
  indexOf: found,
  lastIndexOf: (length, answer) => (Number(answer) < 0 ? length : length - Number(answer)),
  slice: (_, answer) => (answer as unknown[]).length,
  splice: (length, _, first) => Math.max(1, length - Number(first)),
  toSpliced: all,
  concat: all,
  unshift: all,
  shift: all,
};

function entered({ url, functions }: Profiler.ScriptCoverage): number {
  if (!/\/packages\/holdfast\/src\/(?:dialects|session)\//.test(url)) return 0;
  return functions.reduce((sum, { ranges }) => sum + ranges.reduce((all, { count }) => all + count, 0), 0);
}
