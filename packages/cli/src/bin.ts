#!/usr/bin/env node
// Whatever Node runs this must be able to read it: no static import, and no syntax that an old one does not know.
var major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  console.error(
    `holdfast needs Node.js 24 or newer, and this is ${process.version}. Install it from https://nodejs.org.`,
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
  import("./main.ts").then(({ main }) => main(process.argv.slice(2)));
}
