import { existsSync } from "node:fs";
import { join } from "node:path";
import { cacheFolderOf, defaultCache, installInto, manifestOf } from "../../../../bench/peers/install.ts";

/**
 * The programs whose sessions the doctor repairs, as they come from npm: their versions, in this one place, and where
 * they are in a cache outside the workspace. docs/agents.md names the versions that were seen.
 */
const SYSTEM = `${process.platform}-${process.arch}`;

interface Source {
  readonly version: string;
  readonly packages: Readonly<Record<string, string>>;
  /** What is started, in `node_modules`. */
  readonly file: string;
  /** What else npm finds beside the manifest. */
  readonly files?: Readonly<Record<string, string>>;
}

const npm = (name: string, version: string, file: string): Source => ({
  version,
  packages: { [name]: version },
  file: `${name}/${file}`,
});

const DSH = "0.1.0-rc.8";
/** npm does not find a whole for DeepSeek Harness: these are the packages that its own ask for and do not bring. */
const DSH_PEERS = [
  ...["anonymous-user-id", "atomic-write", "bash-local", "code-runtime", "compaction", "fs", "invariants", "sandbox"],
  ...["output-retention", "scope", "session-telemetry", "session-title-llm", "shell", "spill", "timeout", "workflow"],
  "subagent-in-process-driver",
].map((name) => [`@deepseek-ai/dsh-${name}`, DSH]);

/** Binaries come from the package for this system: the main package would only find it again. */
const SOURCES = {
  "claude-code": npm(`@anthropic-ai/claude-code-${SYSTEM}`, "2.1.328", "claude"),
  "claude-code-2.1.197": npm(`@anthropic-ai/claude-code-${SYSTEM}`, "2.1.197", "claude"),
  codex: npm("@openai/codex", "0.169.0", "bin/codex.js"),
  "codex-0.166": npm("@openai/codex", "0.166.0", "bin/codex.js"),
  gemini: npm("@google/gemini-cli", "0.61.0", "bundle/gemini.js"),
  "gemini-core": npm("@google/gemini-cli-core", "0.61.0", "dist/index.js"),
  copilot: npm("@github/copilot", "1.0.102", "npm-loader.js"),
  pi: npm("@mariozechner/pi-coding-agent", "0.73.1", "dist/cli.js"),
  "pi-0.87": npm("@earendil-works/pi-coding-agent", "0.87.1", "dist/cli.js"),
  opencode: npm(`opencode-${SYSTEM}-baseline`.replace("arm64-baseline", "arm64"), "1.18.33", "bin/opencode"),
  dsh: {
    version: DSH,
    packages: {
      "@deepseek-ai/dsh": DSH,
      "@deepseek-ai/cordis-plugin-group": "1.0.4",
      ...(Object.fromEntries(DSH_PEERS) as Record<string, string>),
    },
    file: "@deepseek-ai/dsh/lib/bin.js",
    files: { ".npmrc": "legacy-peer-deps=true\n" },
  },
  cline: npm("cline", "3.0.65", "bin/cline"),
} as const satisfies Readonly<Record<string, Source>>;

export type ProgramName = keyof typeof SOURCES;

export interface Program {
  readonly version: string;
  /** Starts it: the rest of the command line is its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly file: string;
}

/** Installs it, unless it is there. Throws if npm cannot: what was not installed proves nothing. */
export async function installProgram(name: ProgramName, say: (line: string) => void = console.log): Promise<Program> {
  const { version, packages, file, files = {} }: Source = SOURCES[name];
  const source = { key: name, name: `${name} ${version}`, packages };
  const folder = cacheFolderOf(defaultCache(process.env, undefined, "holdfast-doctor"), source, process.version);
  const manifest = `${JSON.stringify(manifestOf(source), null, 2)}\n`;
  await installInto(folder, source.name, { "package.json": manifest, ...files }, say).catch((error: unknown) => {
    throw new Error(`${name} ${version} could not be installed, so nothing was proven with it: ${String(error)}`);
  });
  const path = join(folder, "node_modules", file);
  if (!existsSync(path)) throw new Error(`${name} ${version} is installed without ${path}`);
  return { version, file: path, command: /\.js$|bin\/cline$/.test(file) ? [process.execPath, path] : [path] };
}
