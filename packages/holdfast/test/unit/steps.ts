import { type Profiler, Session } from "node:inspector/promises";

/**
 * How many steps a piece of work takes: how often V8 entered a function or a block of our source (its own counts, exact and the same on every machine),
 * and how many items the methods of arrays that look at items by themselves went over. No clock is asked.
 */
export async function stepsOf(run: () => unknown): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  let items = 0;
  const restore = METHODS.map((name) => {
    // biome-ignore lint/suspicious/noExplicitAny: any method of arrays.
    const methods = Array.prototype as any;
    const method = methods[name] as (...args: unknown[]) => unknown;
    methods[name] = function counted(this: unknown[], ...args: unknown[]) {
      items += this.length;
      return method.apply(this, args);
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
  session.disconnect();
  return items + result.reduce((sum, script) => sum + entered(script), 0);
}

const METHODS = ["includes", "indexOf", "lastIndexOf", "slice", "splice", "toSpliced", "concat", "unshift", "shift"];

function entered({ url, functions }: Profiler.ScriptCoverage): number {
  if (!/\/packages\/holdfast\/src\/(?:dialects|session)\//.test(url)) return 0;
  return functions.reduce((sum, { ranges }) => sum + ranges.reduce((all, { count }) => all + count, 0), 0);
}
