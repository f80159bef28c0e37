import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { defaultCache, installInto } from "../bench/peers/install.ts";

/** The programs that others wrote: their versions, and where they are outside of the workspace. */
export interface AcpProgram {
  readonly name: string;
  readonly package: string;
  readonly version: string;
  /** Starts it: the rest of the command line is its arguments. */
  readonly command: readonly string[];
  /** Why it cannot run on this machine; null if it can. */
  readonly missing: string | null;
}

export type AcpProgramName = "example" | "gemini" | "opencode" | "acpx" | DrivenProgramName;
/** Only for `npm run acp-agents -- --drive`: together they take half a gigabyte. */
export type DrivenProgramName = "codex" | "claude";

/** By platform and processor. The builds that need no AVX2. */
const OPENCODE: Readonly<Record<string, string>> = {
  "darwin-arm64": "opencode-darwin-arm64",
  "darwin-x64": "opencode-darwin-x64-baseline",
  "linux-arm64": "opencode-linux-arm64",
  "linux-x64": "opencode-linux-x64-baseline",
};
const SYSTEM = `${process.platform}-${process.arch}`;

const PROGRAMS = {
  // The last version that contains the examples.
  example: {
    ...{ name: "the SDK's example agent", package: "@agentclientprotocol/sdk", version: "1.9.0" },
    ...{ file: "dist/examples/agent.js", isScript: true },
  },
  gemini: {
    ...{ name: "Gemini CLI", package: "@google/gemini-cli", version: "0.61.0" },
    ...{ file: "bundle/gemini.js", isScript: true },
  },
  opencode: {
    ...{ name: "OpenCode", package: OPENCODE[SYSTEM] ?? null, version: "1.18.33" },
    ...{ file: "bin/opencode", isScript: false },
  },
  acpx: { name: "acpx", package: "acpx", version: "0.19.1", file: "dist/cli.js", isScript: true },
} as const;

const DRIVEN = {
  codex: {
    ...{ name: "Codex", package: "@agentclientprotocol/codex-acp", version: "2.6.0" },
    ...{ file: "dist/index.js", isScript: true },
  },
  claude: {
    ...{ name: "Claude Code", package: "@agentclientprotocol/claude-agent-acp", version: "0.100.0" },
    ...{ file: "dist/index.js", isScript: true },
  },
} as const;

export function acpProgram(name: AcpProgramName): AcpProgram {
  const isDriven = name === "codex" || name === "claude";
  const { package: from, file, isScript, ...rest } = isDriven ? DRIVEN[name] : PROGRAMS[name];
  const path = join(cacheFolder(isDriven ? DRIVEN : PROGRAMS), "node_modules", from ?? "", file);
  return {
    ...rest,
    package: from ?? "opencode-ai",
    command: isScript ? [process.execPath, path] : [path],
    missing: from === null ? `there is no build for ${SYSTEM}` : existsSync(path) ? null : `${path} is not installed`,
  };
}

/** Installs the exact versions, unless they are there. Throws if npm cannot: a skipped test proves nothing. */
export const installAcpPrograms = (say: (line: string) => void = console.log): Promise<void> => install(PROGRAMS, say);

/** The same for those that are only driven. */
export const installDrivenPrograms = (): Promise<void> => install(DRIVEN, console.log);

async function install(programs: Programs, say: (line: string) => void): Promise<void> {
  const started = performance.now();
  const files = { "package.json": `${JSON.stringify(manifest(programs), null, 2)}\n` };
  let isFresh = false;
  await installInto(cacheFolder(programs), "ACP agents", files, (line) => {
    isFresh = true;
    say(line);
  }).catch((error: unknown) => {
    throw new Error(`The ACP agents could not be installed, so nothing was tested with them: ${String(error)}`);
  });
  if (isFresh) say(`installed in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

type Programs = Readonly<Record<string, { readonly package: string | null; readonly version: string }>>;

function manifest(programs: Programs): object {
  const packages = Object.values(programs).flatMap(({ package: from, version }) =>
    from === null ? [] : [[from, version]],
  );
  return { name: "holdfast-acp-agents", private: true, dependencies: Object.fromEntries(packages) };
}

/** Another folder when a version changes. */
function cacheFolder(programs: Programs): string {
  const hash = createHash("sha256").update(JSON.stringify([manifest(programs), process.version]));
  return join(defaultCache(process.env, homedir, "holdfast-acp-agents"), hash.digest("hex").slice(0, 12));
}
