import { spawnSync } from "node:child_process";

/** Why this machine has no terminal of this kind to close; null if it has. */
export function whyNot(program: string, ...args: string[]): string | null {
  if (process.platform === "win32") return "needs a POSIX terminal";
  const { error, status } = spawnSync(program, args, { stdio: "ignore" });
  return error || status !== 0 ? `needs ${program}` : null;
}

/**
 * Python's `pty`, since Node cannot open a terminal: the agent leads a session on a terminal of its own, and when the
 * terminal is closed it is the kernel that sends SIGHUP. Its parent is this program, which passes on what the agent
 * said, and then how it ended.
 */
export const TERMINAL_PY = `
import json, os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while b'"ready"' not in said:
    said += os.read(terminal, 65536)
os.close(terminal)
_, status = os.waitpid(pid, 0)
sys.stdout.write(said.decode().replace("\\r\\n", "\\n").rpartition("\\n")[0] + "\\n")
ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None
code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
print("ended " + json.dumps({"code": code, "signal": ended}))
`;
