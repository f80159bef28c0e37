import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { sabotages } from "./sabotage/list.ts";
import { Workshop } from "./sabotage/workshop.ts";

const HELP = `npm run sabotage -- [--only <text>] [--write]

Breaks the store in a copy of the repository, one way at a time, and runs the tests that should notice. Ends with 1 if nothing noticed.

  --only <text>   only the sabotages whose name contains the text
  --write         write the table into docs/TESTING.md
  --list          show their names

Example: npm run sabotage -- --only fsync
`;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    write: { type: "boolean" },
    list: { type: "boolean" },
    help: { type: "boolean" },
  },
});
const chosen = sabotages.filter(({ name }) => name.includes(values.only));
if (values.help) process.stdout.write(HELP);
else if (values.list) for (const { name } of chosen) console.log(name);
else run();

function run(): void {
  const root = resolve(import.meta.dirname, "..");
  const rows: string[] = [];
  let missed = 0;
  using workshop = new Workshop(root);
  const broken = workshop.failures([...new Set(chosen.flatMap(({ look }) => look))], 900_000);
  if (broken.length > 0) {
    console.error(`Without any sabotage these fail already, so nothing could be told: ${broken.join("; ")}`);
    process.exitCode = 1;
    return;
  }
  for (const [i, sabotage] of chosen.entries()) {
    const started = performance.now();
    const [first, ...others] = workshop.tryOut(sabotage);
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    if (first === undefined) missed++;
    const verdict =
      first === undefined
        ? "NOT CAUGHT"
        : `caught by ${first}${others.length > 0 ? ` (and ${others.length} more)` : ""}`;
    console.log(`${i + 1}/${chosen.length}  ${sabotage.name}\n      ${verdict}  [${seconds} s]`);
    rows.push(
      `| ${sabotage.name} | \`${sabotage.room ? `${sabotage.room.replace(/^packages\/|\/src/g, "")}/` : ""}${sabotage.file}\` | ${first?.replaceAll("|", "\\|") ?? "**nothing**"} |`,
    );
  }
  console.log(`${chosen.length - missed} caught, ${missed} not`);
  if (values.write && values.only === "") writeTable(join(root, "docs/TESTING.md"), rows);
  if (missed > 0) process.exitCode = 1;
}

function writeTable(path: string, rows: readonly string[]): void {
  const text = readFileSync(path, "utf8");
  const [begin, end] = ["<!-- sabotage: begin -->", "<!-- sabotage: end -->"];
  const table = ["| sabotage | in | first caught by |", "|---|---|---|", ...rows].join("\n");
  writeFileSync(
    path,
    `${text.slice(0, text.indexOf(begin) + begin.length)}\n${table}\n${text.slice(text.indexOf(end))}`,
  );
}
