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
  import("./compile-cache.ts")
    .then(({ keepCompiled }) => keepCompiled(process))
    .then(() => import("./main.ts"))
    .then(({ main }) => main(process.argv.slice(2)));
}
