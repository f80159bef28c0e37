import { FileContent } from "./file-content.ts";
import { FolderNames, type NameTwins } from "./folder-names.ts";
import type { Survival } from "./survival.ts";

/** A file or folder, independent of its names. The number survives renames, kills and crashes. */
export type Inode = FileInode | FolderInode;

export interface FileInode {
  readonly kind: "file";
  readonly ino: number;
  content: FileContent;
  mtimeMs: number;
}

export interface FolderInode {
  readonly kind: "folder";
  readonly ino: number;
  readonly names: FolderNames<Inode>;
  mtimeMs: number;
}

export function newFile(ino: number, mtimeMs: number): FileInode {
  return { kind: "file", ino, content: new FileContent(), mtimeMs };
}

export function newFolder(ino: number, mtimeMs: number): FolderInode {
  return { kind: "folder", ino, names: new FolderNames<Inode>(), mtimeMs };
}

/** Every inode under a folder by its current names, including the folder itself. */
export function* walk(inode: Inode, path = ""): Generator<{ readonly path: string; readonly inode: Inode }> {
  yield { path: path === "" ? "/" : path, inode };
  if (inode.kind !== "folder") return;
  for (const name of inode.names.names.sort()) yield* walk(inode.names.get(name)!, `${path}/${name}`);
}

/** The tree after a power cut: everything in it is durable. */
export function treeAfterCrash(root: FolderInode, survival: Survival): FolderInode {
  const fates = new Map();
  const after = new Map<Inode, Inode>();
  const remount = (inode: Inode): Inode => {
    const known = after.get(inode);
    if (known !== undefined) return known;
    if (inode.kind === "file") {
      const file: FileInode = { ...inode, content: inode.content.afterCrash(survival) };
      after.set(inode, file);
      return file;
    }
    const folder = newFolder(inode.ino, inode.mtimeMs);
    after.set(inode, folder);
    const names = inode.names.afterCrash(survival, fates);
    folder.names.settle(new Map([...names].map(([name, child]) => [name, remount(child)])));
    return folder;
  };
  return remount(root) as FolderInode;
}

/** The tree with everything that is only in the cache: what other processes see after one was killed. */
export function copyTree(root: FolderInode): FolderInode {
  const copies = new Map<Inode, Inode>();
  const folders = new Map<FolderNames<Inode>, FolderNames<Inode>>();
  const pending: FolderInode[] = [];
  const twin = (inode: Inode): Inode => {
    const known = copies.get(inode);
    if (known !== undefined) return known;
    if (inode.kind === "file") {
      const file: FileInode = { ...inode, content: inode.content.copy() };
      copies.set(inode, file);
      return file;
    }
    const folder = newFolder(inode.ino, inode.mtimeMs);
    copies.set(inode, folder);
    folders.set(inode.names, folder.names);
    pending.push(inode);
    return folder;
  };
  const twins: NameTwins<Inode> = {
    folder(names) {
      // A folder that no name leads to can still take part in a pending move: it needs an identity, but no content.
      const known = folders.get(names) ?? new FolderNames<Inode>();
      folders.set(names, known);
      return known;
    },
    changes: new Map(),
  };
  const copy = twin(root) as FolderInode;
  // First the folders, then their names: a pending move refers to the copies of both its folders.
  const seen: FolderInode[] = [];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    seen.push(folder);
    for (const inode of folder.names.reachable) twin(inode);
  }
  for (const folder of seen) folder.names.copyInto(folders.get(folder.names)!, twin, twins);
  return copy;
}
