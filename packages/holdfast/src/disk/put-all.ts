/**
 * Writes everything. After a short write the rest is written again: either it fits, or its error says why it did not
 * (no space, a quota, a maximum file size, a failing disk). A write that takes nothing, without an error, means a full
 * disk.
 */
export function putAll(bytes: Uint8Array, write: (rest: Uint8Array) => number): void {
  for (let done = 0; done < bytes.length; ) {
    const written = write(done === 0 ? bytes : bytes.subarray(done));
    if (written === 0) throw Object.assign(new Error("the write took no bytes"), { code: "ENOSPC" });
    done += written;
  }
}
