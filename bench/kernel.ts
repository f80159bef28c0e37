import * as fs from "node:fs";

/**
 * Loading modules takes memory that is given back before the work begins: the peak is counted from here on, where the
 * kernel can.
 */
export function resetPeak(): void {
  if (process.platform === "linux") fs.writeFileSync("/proc/self/clear_refs", "5");
}

export function peakBytes(): number {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * 1024;
  const match = /^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync("/proc/self/status", "utf8"));
  if (!match) throw new Error("/proc/self/status does not say how much memory was used");
  return Number(match[1]) * 1024;
}

/** All bytes that this process has handed to the kernel (`wchar`); null where the kernel does not count them. */
export function bytesHandedOver(): number | null {
  if (process.platform !== "linux") return null;
  const match = /^wchar: (\d+)$/m.exec(fs.readFileSync("/proc/self/io", "utf8"));
  if (!match) throw new Error("/proc/self/io does not say how much was written");
  return Number(match[1]);
}
