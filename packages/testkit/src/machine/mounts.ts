import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./probe.ts";

const PREFIX = "holdfast-machine-";
const MIB = 1024 * 1024;

/** What is mounted now, newest last: unmounted when the process exits in any way that lets it run code. */
const mounted: string[] = [];
let guarded = false;

/** A folder with its own file systems below it. Everything is removed with it, also when a test fails. */
export class Machine implements AsyncDisposable {
  readonly folder: string;

  constructor() {
    sweep();
    if (!guarded) process.on("exit", () => mounted.splice(0).reverse().forEach(forceDown));
    guarded = true;
    this.folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  }

  /** A file system in memory, of this many bytes. Returns where it is mounted. */
  async tmpfs(name: string, bytes: number): Promise<string> {
    const path = this.#mountPoint(name);
    await run("mount", "-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "tmpfs", path);
    mounted.push(path);
    return path;
  }

  /** An ext4 file system in a sparse file, not yet mounted. `on` is the folder of the file. */
  async ext4(
    name: string,
    bytes: number,
    options: { readonly on?: string; readonly mkfs?: readonly string[] } = {},
  ): Promise<LoopDisk> {
    const image = join(options.on ?? this.folder, `${name}.img`);
    writeFileSync(image, "");
    truncateSync(image, bytes);
    // Reserve nothing for root: tests run as root, and a full disk must be full for them too.
    await run("mkfs.ext4", "-q", "-F", "-m", "0", ...(options.mkfs ?? []), image);
    return new LoopDisk(image, this.#mountPoint(name));
  }

  /** A file system whose bytes are given, not yet mounted. */
  image(name: string, bytes: Uint8Array): LoopDisk {
    const image = join(this.folder, `${name}.img`);
    writeFileSync(image, bytes);
    return new LoopDisk(image, this.#mountPoint(name));
  }

  #mountPoint(name: string): string {
    const path = join(this.folder, name);
    mkdirSync(path);
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Lazily: a failed test may have left files open, and its own error matters more than ours.
    for (const path of mounted.filter((path) => path.startsWith(this.folder)).reverse()) {
      forceDown(path);
      mounted.splice(mounted.indexOf(path), 1);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A file system on a loop device. */
export class LoopDisk {
  readonly path: string;
  readonly #image: string;

  constructor(image: string, path: string) {
    this.#image = image;
    this.path = path;
  }

  async mount(options: readonly string[] = []): Promise<void> {
    await run("mount", "-o", ["loop", ...options].join(","), this.#image, this.path);
    mounted.push(this.path);
  }

  /** Fails if any file on it is still open. */
  async unmount(): Promise<void> {
    await takeDown(this.path);
  }
}

async function takeDown(path: string): Promise<void> {
  await run("umount", path);
  mounted.splice(mounted.indexOf(path), 1);
}

/** Lazily: processes that still use it keep it until they end. The loop device goes with the mount. */
function forceDown(path: string): void {
  execFileSync("umount", ["-l", path], { stdio: "ignore" });
}

/** What a killed test process left behind. */
function sweep(): void {
  const points = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  for (const path of points.filter((path) => path.includes(`/${PREFIX}`) && !ownerLives(path)).reverse())
    forceDown(path);
  for (const name of readdirSync(tmpdir()))
    if (name.startsWith(PREFIX) && !ownerLives(name)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
}

function ownerLives(path: string): boolean {
  const pid = new RegExp(`${PREFIX}(\\d+)-`).exec(path)?.[1];
  return pid === undefined || existsSync(`/proc/${pid}`);
}

export const mib = (n: number): number => n * MIB;
