/** File systems that do not honour POSIX locks and fsync (S14), by statfs number (Linux). */
export const NETWORK_KINDS: ReadonlyMap<number, string> = new Map([
  [0x6969, "nfs"],
  [0x517b, "smb"],
  [0xff534d42, "cifs"],
  [0xfe534d42, "smb2"],
  [0x01021997, "9p"],
  [0x5346414f, "afs"],
  [0x6b414653, "afs"],
  [0x00c36400, "ceph"],
  [0x0bd00bd0, "lustre"],
  [0x19830326, "beegfs"],
  [0x20030528, "orangefs"],
  [0x73757245, "coda"],
  [0x564c, "ncp"],
  // Host folders, in a virtual machine.
  [0x786f4256, "vboxsf"],
  [0xbacbacbc, "vmhgfs"],
  [0x7c7c6673, "prl_fs"],
]);

/** statfs reports this for every FUSE file system, including virtiofs: only the mount table tells which one it is. */
export const FUSE = 0x65735546;

/**
 * FUSE file systems on a local disk: on a block device (ntfs-3g, exfat), or on top of another file system to which they
 * pass locks and syncs.
 */
const LOCAL_MOUNTS = new Set([
  "fuseblk",
  "fuse.fuse-overlayfs",
  "fuse.bindfs",
  "fuse.mergerfs",
  "fuse.gocryptfs",
  "fuse.encfs",
  "fuse.cryfs",
  "fuse.securefs",
]);

/** A FUSE file system not known to be local may be anything: `sshfs`, `gcsfuse`, a host folder (`virtiofs`). */
export function isNetworkMount(kind: string): boolean {
  return !LOCAL_MOUNTS.has(kind);
}

/**
 * The type of the mount with this device number (`fuse.sshfs`), from the text of `/proc/self/mountinfo`; null if
 * absent.
 */
export function mountKind(mountinfo: string, dev: number): string | null {
  const device = `${majorOf(dev)}:${minorOf(dev)}`;
  for (const line of mountinfo.split("\n")) {
    // Fields: id, parent, device, root, mount point, options, any number of optional fields, a hyphen, then the type.
    const fields = line.split(" ");
    if (fields[2] !== device) continue;
    const type = fields[fields.indexOf("-", 6) + 1];
    if (type !== undefined && type !== "") return type;
  }
  return null;
}

/** Where something is mounted, from the same text. It escapes spaces and the like in octal. */
export function mountPoints(mountinfo: string): string[] {
  const unescaped = (path: string): string =>
    path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  return mountinfo.split("\n").map((line) => unescaped(line.split(" ")[4] ?? ""));
}

/** A Linux device number interleaves its two parts and has more than 32 bits. */
function majorOf(dev: number): number {
  return Number((BigInt(dev) >> 8n) & 0xfffn) + Number((BigInt(dev) >> 32n) & 0xfffff000n);
}

function minorOf(dev: number): number {
  return Number(BigInt(dev) & 0xffn) + Number((BigInt(dev) >> 12n) & 0xffffff00n);
}
