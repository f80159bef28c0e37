import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type OutputOptions, type Plugin, rolldown } from "rolldown";

/**
 * The library and the command as they are installed: the modules of this repository in a few files. Node takes longer
 * to find and link two hundred small files than the command takes to do its work.
 */

const root = join(import.meta.dirname, "..");
const library = join(root, "packages/holdfast");
const cli = join(root, "packages/cli");
export const libraryFolder = join(library, "bundle");
export const commandFolder = join(cli, "bundle");

const SOURCES = { tsconfig: join(root, "tsconfig.base.json"), platform: "node" } as const;
// A module that one command loads late may be loaded early by another: that is as it should be.
const CHECKS = { ineffectiveDynamicImport: false };

/** What an application needs before it opens a store. */
const EARLY = [
  "account/",
  "dialects/",
  "guard/",
  "redact/",
  "text/",
  "errors.ts",
  "admit/refusals.ts",
  "disk/descriptors.ts",
  "disk/failure.ts",
  "load-part.ts",
  "defined.ts",
  "journal/id.ts",
  "session-state.ts",
  "session/open-store.ts",
  "session/guarded.ts",
  "session/turn/tool-call.ts",
  "session/typed-state.ts",
  "stores/address.ts",
  "stores/default-address.ts",
  "stores/schemes.ts",
  "stores/shown-address.ts",
  "view/changes-words.ts",
  "view/decide-call.ts",
  "view/model-words.ts",
];

/**
 * An older Node can parse the library, but lacks functions that its first lines use: this says so before they run. It
 * stands on a line of its own, because Node prints the line that throws. Cloudflare Workers have
 * what the library needs, and call themselves Node 22.
 */
const NODE_CHECK =
  'if (!process.versions.bun && !process.versions.deno && globalThis.navigator?.userAgent !== "Cloudflare-Workers" && parseInt(process.versions.node) < 24)\n' +
  '  throw new Error("holdfast needs Node.js 24 or newer, Bun or Deno, but this is Node.js " + process.versions.node + ".");';

/**
 * The library: what an application needs before it opens a store in one file, what a list needs in another, what
 * conversations need in a third, the rarer stores in files of their own, and an entry of a few lines for each name in
 * `exports`.
 */
export async function bundleLibrary(): Promise<void> {
  const src = join(library, "src");
  const entries = {
    index: join(src, "index.ts"),
    store: join(src, "store.ts"),
    internal: join(src, "internal.ts"),
    disk: join(src, "disk/index.ts"),
    address: join(src, "address.ts"),
  };
  const build = await rolldown({
    ...SOURCES,
    input: entries,
    checks: CHECKS,
    plugins: [builtins],
    transform: { target: "node24" },
    treeshake: { propertyReadSideEffects: false },
  });
  // An application opens one store, so the rarer ones are files of their own.
  const stores = ["sqlite", "memory"].map((name) => ({ name, folder: join(src, "stores", name, "/") }));
  const apart = [...stores.map(({ folder }) => folder), ...Object.values(entries)];
  const early = EARLY.map((path) => join(src, path));
  const listing = (await modulesBehind(build))(join(src, "session/store.ts"));
  const files = await write(build, {
    dir: libraryFolder,
    // A program that was started before an upgrade must not load parts of the new version.
    chunkFileNames: "[name]-[hash].js",
    postBanner: ({ name }) => (name === "holdfast" || name === "lists" ? NODE_CHECK : ""),
    // Readable, because Node prints the line of an uncaught error. The comments are in the sources.
    comments: { legal: false, jsdoc: false, annotation: true },
    sourcemap: true,
    sourcemapExcludeSources: true,
    codeSplitting: {
      groups: [
        ...stores.map(({ name, folder }) => ({ name, test: (id: string) => id.startsWith(folder) })),
        { name: "holdfast", priority: 3, test: (id) => early.some((path) => id.startsWith(path)) },
        { name: "lists", priority: 2, test: (id) => listing.has(id) },
        { name: "sessions", priority: 1, test: (id) => !apart.some((path) => id.startsWith(path)) },
      ],
    },
  });
  removeOthers(libraryFolder, files);
}

/**
 * The command, with the packages of this repository that it needs. What others wrote stays outside, and so does the
 * testkit, whose processes are started from its own files. Returns the names of its files; others that are there stay,
 * because somebody may be running them.
 */
export async function bundleCommand(): Promise<readonly string[]> {
  const build = await rolldown({
    ...SOURCES,
    input: { bin: join(cli, "src/bin.ts"), "search-worker": join(cli, "src/tools/files/search-worker.ts") },
    checks: CHECKS,
    plugins: [builtins],
    external: [
      /^commander$/,
      /^(?:ai|hono|ink|jsonc-parser|marked|react|string-width|zod)(?:\/|$)/,
      /^@hono\//,
      /^@ai-sdk\//,
      /^@modelcontextprotocol\//,
      /^@holdfast\/testkit/,
    ],
    resolve: { conditionNames: ["holdfast-source", "node", "import", "default"] },
    transform: { target: "node24", jsx: "react-jsx" },
    treeshake: { propertyReadSideEffects: false },
  });
  // What `--version` needs, what every command needs, and what opening a store needs: Node takes longer to find fifty
  // files than to read three.
  const behind = await modulesBehind(build);
  const entries = [join(cli, "src/version.ts"), join(cli, "src/main.ts"), join(library, "src/session/store.ts")];
  const groups = entries.map((entry, i) => {
    const modules = behind(entry);
    return {
      name: ["version", "common", "sessions"][i]!,
      priority: entries.length - i,
      test: (id: string) => modules.has(id),
    };
  });
  // No folders: the modules look for what stands beside them, and for package.json above them.
  const files = await write(build, {
    dir: commandFolder,
    chunkFileNames: "[name]-[hash].js",
    codeSplitting: { groups },
  });
  chmodSync(join(commandFolder, "bin.js"), 0o755);
  return files;
}

/** Finds the modules that are loaded together with a given one. */
async function modulesBehind(
  build: Awaited<ReturnType<typeof rolldown>>,
): Promise<(entry: string) => ReadonlySet<string>> {
  const { output } = await build.generate({ format: "esm" });
  const chunks = new Map(output.flatMap((file) => (file.type === "chunk" ? [[file.fileName, file] as const] : [])));
  return (entry) => {
    const modules = new Set<string>();
    const seen = new Set<string>();
    const visit = (fileName: string): void => {
      const chunk = chunks.get(fileName);
      if (!chunk || seen.has(fileName)) return;
      seen.add(fileName);
      for (const id of chunk.moduleIds) modules.add(id);
      for (const imported of chunk.imports) visit(imported);
    };
    for (const [fileName, { moduleIds }] of chunks) if (moduleIds.includes(entry)) visit(fileName);
    if (modules.size === 0) throw new Error(`${entry} is not in the bundle`);
    return modules;
  };
}

async function write(build: Awaited<ReturnType<typeof rolldown>>, options: OutputOptions): Promise<readonly string[]> {
  const { output } = await build.write({ format: "esm", entryFileNames: "[name].js", ...options });
  await build.close();
  return output.map(({ fileName }) => fileName);
}

/**
 * An `import` of one of Node's own modules makes Node load everything that the module exports, streams and workers
 * included; `process.getBuiltinModule` loads what is used. The modules that take longest are loaded when one of their
 * functions is first called; they may be imported only for those.
 */
const LATE = ["node:crypto", "node:zlib"];
const builtins: Plugin = {
  name: "builtins",
  resolveId: (id) => (id.startsWith("node:") ? { id: `\0${id}`, moduleSideEffects: false } : null),
  async load(id) {
    if (!id.startsWith("\0node:")) return null;
    const name = id.slice(1);
    const module = (await import(name)) as Readonly<Record<string, unknown>>;
    const names = Object.keys(module).filter((member) => member !== "default" && /^[A-Za-z_]\w*$/.test(member));
    // The first call replaces it, so that the others cost nothing more.
    const late = (member: string): string =>
      `export let ${member} = (...args) => (${member} = process.getBuiltinModule("${name}").${member})(...args);`;
    const early = (member: string): string =>
      `const $${member} = builtin.${member}; export { $${member} as ${member} };`;
    if (LATE.includes(name))
      return names
        .filter((member) => typeof module[member] === "function")
        .map(late)
        .join("\n");
    return [
      `const builtin = process.getBuiltinModule("${name}");`,
      ...names.map(early),
      "export default builtin;",
    ].join("\n");
  },
};

function removeOthers(folder: string, files: readonly string[]): void {
  for (const name of readdirSync(folder)) if (!files.includes(name)) rmSync(join(folder, name));
}

if (import.meta.main) {
  await bundleLibrary();
  removeOthers(commandFolder, await bundleCommand());
  // In a fresh clone `npm ci` finds no bundle, and so links no command: without this, `npx holdfast` does not work
  // there.
  if (!existsSync(join(root, "node_modules/.bin/holdfast")))
    execFileSync("npm", ["rebuild", "--silent", "--ignore-scripts", "@holdfast/cli"], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit"],
    });
}
