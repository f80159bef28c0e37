#!/usr/bin/env node
// Any version of Node must be able to parse this file: no static imports, and no recent syntax.
var major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  console.error(
    `holdfast needs Node.js 24 or newer, but this is ${process.version}. Install it from https://nodejs.org.`,
  );
  process.exitCode = 2;
} else {
  start();
}

function start(): void {
  const wanted = process.argv[2];
  if (process.argv.length === 3 && (wanted === "--version" || wanted === "-v" || wanted === "-V")) {
    import("./version.ts").then(({ version }) => console.log(version));
    return;
  }
  keepCompiled();
  import("./main.ts").then(({ main }) => main(process.argv.slice(2)));
}

/**
 * Makes Node cache compiled code, which cuts startup time by a fifth. The cache is in a folder that belongs to the
 * user: in the temporary folder, Node's default, other users could plant code. If the folder cannot be created, there
 * is no cache, and no error.
 */
function keepCompiled(): void {
  const { env, platform } = process;
  const home = env["HOME"] || env["USERPROFILE"];
  // A relative home would create a cache in every folder.
  if (env["NODE_COMPILE_CACHE"] || !home || !/^(?:[a-z]:)?[\\/]/i.test(home)) return;
  const caches =
    platform === "win32"
      ? env["LOCALAPPDATA"] || `${home}/AppData/Local`
      : platform === "darwin"
        ? `${home}/Library/Caches`
        : (env["XDG_CACHE_HOME"] || "").startsWith("/")
          ? env["XDG_CACHE_HOME"]
          : `${home}/.cache`;
  process.getBuiltinModule("node:module").enableCompileCache(`${caches}/holdfast/compiled`);
}
