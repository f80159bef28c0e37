import { machineLines } from "../machine.ts";
import { align } from "../report.ts";
import { type Comparison, middleOf, type PeerResult } from "./comparison.ts";
import { isOurs, roster, type Survives } from "./roster.ts";
import { amount, cellWords, isClearlyLess, type Job, jobsOf } from "./words.ts";

interface Table {
  readonly title: string;
  readonly note: string;
  readonly rows: readonly (readonly string[])[];
}

const GROUPS: readonly { readonly survives: Survives; readonly name: string }[] = [
  { survives: "kill", name: "survives a killed process, not a power cut" },
  { survives: "power", name: "survives a power cut too" },
];

/** What is shown on the terminal. */
export function comparisonLines(comparison: Comparison): string[] {
  const tables = tablesOf(comparison).flatMap(({ title, note, rows }) => {
    return [title, ...align(rows.map((row) => row.map(plain))), plain(note), ""];
  });
  return [...tables, "Where another store is better", ...better(comparison).map(plain), "", ...failedLines(comparison)];
}

/** docs/bench/peers.md. */
export function comparisonPage(comparison: Comparison): string {
  const { machine, plan, measured, quick, peers } = comparison;
  const failed = failedLines(comparison);
  const paragraphs = [
    "# Holdfast and other ways to store sessions",
    "`npm run bench -- --peers` wrote this page, the [figures](peers.json) behind it and the [picture](peers.svg). It " +
      "installs the other stores from npm into a cache of its own, runs each in a process of its own, and lets all of " +
      "them do the same work in turn, one at a time.",
    ...(quick ? ["**This was a `--quick` run: smaller sizes, fewer rounds. The figures are provisional.**"] : []),
    `Measured on ${measured.slice(0, 10)}. ${machineLines(machine).join("; ")}.`,
    "The work: turns of ten messages (a prompt, four tool calls with their results, an answer), about 2 KB each, in " +
      "each store's own form. A figure is the median of the rounds, with the lowest and the highest round in brackets. " +
      "Files are in the page cache.",
    ...tablesOf(comparison).map(({ title, note, rows }) => `## ${title}\n\n${markdownTable(rows)}\n\n${note}`),
    `## Where another store is better\n\n${better(comparison)
      .map((line) => `- ${line}`)
      .join("\n")}`,
    ...(failed.length > 0 ? [`## What failed\n\n${failed.map((line) => `- ${line}`).join("\n")}`] : []),
    `## What each store did\n\n${markdownTable([
      ["store", "versions", "how it was driven"],
      ...peers.map((peer) => [peer.name, versionWords(peer, comparison), peer.driven]),
    ])}`,
    `Peak memory is that of the whole process while it resumes, including Node and the loaded packages. A session to ` +
      `resume is made in the fastest way that the store has; LangGraph's has one checkpoint, its best case. A resume or ` +
      `list that takes longer than ${plan.readMs / 1000} s is stopped.`,
  ];
  return `${paragraphs.map(wrap).join("\n\n")}\n`;
}

/** What could not be done, contender by contender. Empty if all went well. */
export function failedLines({ peers }: Comparison): string[] {
  return peers.flatMap(({ name, errors }) => errors.map((error) => `FAILED ${name}: ${error}`));
}

function tablesOf(comparison: Comparison): Table[] {
  const { plan } = comparison;
  const jobs = jobsOf(comparison);
  const number = (value: number): string => value.toLocaleString("en");
  const writes = jobs.filter((job) => job.writes);
  const ages = plan.ages.map((age) => `at ${number(age)}`);
  const storing = writes.filter((job) => job.unit === "µs");
  const stopped = comparison.peers.flatMap(({ name, append }) => {
    const cell = plan.ages.map((age) => append[age]!).find((cell) => "none" in cell && cell.none.startsWith("stopped"));
    return cell && "none" in cell ? [`- ${name}: ${cell.none}.`] : [];
  });
  return [
    {
      title: "Store a message",
      note: [
        "The time of a turn, divided by its ten messages, when the session has this many and up to a third more (at " +
          "100: up to twice as many). Each message is acknowledged before the next one.",
        ...(stopped.length > 0 ? ["", ...stopped] : []),
      ].join("\n"),
      rows: grouped(comparison, ["store", ...ages], storing),
    },
    {
      title: "Bytes written per byte of message",
      note: "What the process hands to the kernel (`wchar` in /proc/self/io), SQLite's log included.",
      rows: grouped(
        comparison,
        ["store", ...ages],
        writes.filter((job) => job.unit === "×"),
      ),
    },
    {
      title: "Resume",
      note: "In a new process: open the store, and have all messages in memory. Loading the packages is not counted.",
      rows: flat(
        comparison,
        ["store", ...plan.resumes.flatMap((size) => [`${number(size)} messages`, "peak memory"])],
        jobs.filter((job) => !job.writes && job.unit !== "×" && /resume/.test(job.what)),
      ),
    },
    {
      title: `List ${number(plan.sessions)} sessions of ten messages`,
      note: [
        "In a new process: open the store, and have title and time of every session.",
        ...roster.flatMap(({ key, name, noList }) => {
          return noList && comparison.peers.some((peer) => peer.key === key) ? [`${name}: ${noList}.`] : [];
        }),
      ].join(" "),
      rows: flat(comparison, ["store", "time"], [jobs.at(-1)!]),
    },
  ];
}

/** A row per store, those that survive the same together. */
function grouped({ peers }: Comparison, head: readonly string[], jobs: readonly Job[]): string[][] {
  const groups = GROUPS.flatMap(({ survives, name }) => {
    const own = peers.filter((peer) => peer.survives === survives);
    return own.length > 0 ? [[`*${name}*`, ...jobs.map(() => "")], ...own.map((peer) => rowOf(peer, jobs))] : [];
  });
  return [[...head], ...groups];
}

/** Reading does not depend on what a store survives. */
function flat({ peers }: Comparison, head: readonly string[], jobs: readonly Job[]): string[][] {
  return [[...head], ...peers.filter(({ readsLike }) => readsLike === null).map((peer) => rowOf(peer, jobs))];
}

function rowOf(peer: PeerResult, jobs: readonly Job[]): string[] {
  const name = isOurs(peer) ? `**${peer.name}**` : peer.name;
  return [name, ...jobs.map((job) => cellWords(job.of(peer), job.unit))];
}

/** Every figure in which another store beats Holdfast, in a sentence. */
function better(comparison: Comparison): string[] {
  const lines = jobsOf(comparison).flatMap((job) => {
    const ours = comparison.peers.filter(isOurs);
    return comparison.peers.flatMap((peer) => {
      const own = ours.find(({ survives }) => survives === (job.writes ? peer.survives : "kill"));
      const [value, against] = [middleOf(job.of(peer)), middleOf(own && job.of(own))];
      if (isOurs(peer) || value === null || against === null || "over" in job.of(peer)! || value >= against) return [];
      const figures = `${amount(value, job.unit)} against ${amount(against, job.unit)}`;
      const doubt = isClearlyLess(job.of(peer), job.of(own!)) ? "" : "; the rounds overlap";
      return [`${job.what}: **${peer.name}**, ${figures}${doubt}.`];
    });
  });
  return lines.length > 0 ? lines : ["In this run there was none."];
}

function versionWords({ key, versions }: PeerResult, { machine }: Comparison): string {
  if (isOurs({ key }) || key === "langgraph-holdfast") return "this repository";
  if (key.startsWith("sqlite")) return `Node ${machine.node}, SQLite ${machine.sqlite}`;
  const words = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return words.join(", ") || `Node ${machine.node}`;
}

function markdownTable(rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`.replaceAll(/ {2,}/g, " ");
  return [line(rows[0]!), `|${"---|".repeat(rows[0]!.length)}`, ...rows.slice(1).map(line)].join("\n");
}

function plain(markdown: string): string {
  return markdown.replaceAll(/[*`]/g, "");
}

/** Prose wraps at 120 columns; tables and headings stay as they are. */
function wrap(paragraph: string): string {
  return paragraph
    .split("\n")
    .map((line) => (line.startsWith("|") || line.startsWith("#") ? line : wrapLine(line)))
    .join("\n");
}

function wrapLine(line: string): string {
  const lines = [""];
  for (const word of line.split(" ")) {
    const last = lines.at(-1)!;
    if (last !== "" && last.length + 1 + word.length > 120) lines.push(line.startsWith("- ") ? `  ${word}` : word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.join("\n");
}
