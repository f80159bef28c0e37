import { spawn } from "node:child_process";
import { plainLine } from "../terminal/plain.ts";

const PATIENCE_MS = 5_000;
const TEXT_CHARS_MAX = 400;

/**
 * Shows a notification on the desktop, where there is one. The words are an argument of their own, and nothing in them
 * is a command or markup. Nobody waits for it, and it never fails: the words are on standard error too.
 */
export function notify(words: string, env: Readonly<Record<string, string | undefined>> = process.env): void {
  const text = plainLine(words).slice(0, TEXT_CHARS_MAX);
  const command = commandFor(text, env);
  if (command === null) return;
  const [program, ...args] = command;
  const child = spawn(program!, args, { stdio: "ignore", timeout: PATIENCE_MS, killSignal: "SIGKILL" });
  // There may be no such program.
  child.on("error", () => undefined);
  child.unref();
}

function commandFor(text: string, env: Readonly<Record<string, string | undefined>>): readonly string[] | null {
  if (process.platform === "darwin")
    return [
      "osascript",
      ...["-e", "on run argv", "-e", 'display notification (item 1 of argv) with title "Holdfast"', "-e", "end run"],
      text,
    ];
  const hasDesktop = ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"].some((name) => env[name]);
  if (process.platform === "win32" || !hasDesktop) return null;
  const markup: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  return ["notify-send", "--app-name=Holdfast", "--", "Holdfast", text.replaceAll(/[&<>]/g, (one) => markup[one]!)];
}
