/** Records `holdfast demo` in a real terminal, and writes docs/demo.svg. `npm run record` */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Chunk, svgOf } from "./record-svg.ts";

const root = join(import.meta.dirname, "..");
const target = join(root, "docs/demo.svg");
const COLUMNS = 80;
const ROWS = 30;
const SEED = "7";
const BYTES_MAX = 200_000;

const command = [
  process.execPath,
  "--conditions=holdfast-source",
  join(root, "packages/cli/src/bin.ts"),
  "demo",
  "--seed",
  SEED,
];

/** `script` gives it a terminal of its own, of the size that is wanted. */
function record(): Promise<Chunk[]> {
  const inside = `stty cols ${COLUMNS} rows ${ROWS + 1}; exec ${command.map((word) => `'${word}'`).join(" ")}`;
  const { NO_COLOR: _, FORCE_COLOR: __, ...env } = process.env;
  const child = spawn("script", ["-qfec", inside, "/dev/null"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...env, TERM: "xterm-256color" },
  });
  const typed = [..."$ npx holdfast demo"].map((text, index) => ({ ms: 400 + index * 60, text }));
  const chunks: Chunk[] = [...typed, { ms: 1900, text: "\n" }];
  const start = performance.now() - 1900;
  child.stdout.setEncoding("utf8").on("data", (text: string) => chunks.push({ ms: performance.now() - start, text }));
  return new Promise((resolve, reject) => {
    child.once("error", (error) =>
      reject(new Error(`"script" (of util-linux) could not be started: ${error.message}`)),
    );
    child.once("close", (code) => {
      if (code === 0) resolve(chunks);
      else
        reject(
          new Error(
            `the demo ended with ${code}; nothing was written. What it said:\n${chunks.map((one) => one.text).join("")}`,
          ),
        );
    });
  });
}

const svg = svgOf(await record(), {
  columns: COLUMNS,
  rows: ROWS,
  title: "holdfast demo",
  description:
    "An agent works on a task. It is killed with kill -9 while text streams, while a command runs, during a compaction, while two sub-agents are working, and at a random moment; each time a new process resumes the turn. It ends with a receipt: everything acknowledged is there, no effect happened twice, and the files match those of an undisturbed run.",
  holdMs: 8000,
  silenceMsMax: 1500,
});
if (svg.length > BYTES_MAX)
  throw new Error(`${svg.length} bytes are too many for a picture in a README; nothing was written`);
writeFileSync(target, svg);
console.log(`${target}: ${Math.round(svg.length / 1024)} KB`);
