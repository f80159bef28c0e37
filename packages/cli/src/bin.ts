#!/usr/bin/env node
// Whatever Node runs this must be able to read it: no static import, and no syntax that an old one does not know.
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
  if (process.argv.length === 3 && (wanted === "--version" || wanted === "-V")) {
    import("./version.ts").then(({ version }) => console.log(version));
    return;
  }
  keepCompiled();
  import("./main.ts").then(({ main }) => main(process.argv.slice(2)));
}

/**
 * Node keeps what it has compiled for the next time, which saves a fifth of the start. In a folder of the user's own:
 * in the temporary folder, where Node would do it, others could put theirs. A folder that cannot be
 * made is no reason to fail: then nothing is kept.
 */
function keepCompiled(): void {
  const { env, platform } = process;
  const home = env["HOME"] || env["USERPROFILE"];
  // A home that is no whole path would be one in each folder.
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
