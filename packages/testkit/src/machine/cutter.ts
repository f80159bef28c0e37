import { type ChildProcess, spawn } from "node:child_process";

/**
 * The ext4 ioctl EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: from that instant nothing more reaches the device,
 * neither data nor the file system's own log, as in a power cut. But the processes live on, and a sync in flight can
 * return as if it had succeeded: ignore everything reported after a cut. It also does not reach below the file system:
 * it cannot reveal a device that lies about a flush.
 */
const PROGRAM = `
import fcntl, os, struct, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
print("armed", flush=True)
sys.stdin.readline()
fcntl.ioctl(folder, 0x8004587D, struct.pack("I", 2))
`;

/** A power switch for a mounted ext4: armed in advance, so that the cut itself takes no time. */
export class Cutter implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly armed: Promise<void>;

  constructor(mountPoint: string) {
    const child = spawn("python3", ["-c", PROGRAM, mountPoint], { stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    let words = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      words += text;
    });
    this.#ended = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => {
        if (code === 0 || signal === "SIGKILL") resolve();
        else reject(new Error(`the power could not be cut: ${words}`));
      });
    });
    this.armed = Promise.race([
      new Promise<void>((resolve) => child.stdout.once("data", () => resolve())),
      this.#ended,
    ]);
  }

  /** Cuts the power. It is done when this resolves. */
  async cut(): Promise<void> {
    this.#child.stdin?.end("\n");
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
