import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { place } from "../place.ts";
import { needs } from "./allowed.ts";

const program = fileURLToPath(new URL("./starved.ts", import.meta.url));
const noShell = process.platform === "win32" ? "needs a POSIX shell" : null;

describe.each(["folder", "sqlite"])("a moment without descriptors (%s)", (kind) => {
  test("is told as such by every call, and over when it is over", (context) => {
    needs(context, "too many open files", noShell);
    using here = place();
    const node = `"${process.execPath}" --conditions=holdfast-source "${program}" ${kind} "${here.path}"`;
    const said = execFileSync("/bin/sh", ["-c", `ulimit -n 128 && exec ${node}`], { encoding: "utf8" });
    expect(said).toMatch(/^tried \d{3}\n$/);
  });
});
