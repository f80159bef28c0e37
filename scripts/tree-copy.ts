import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

const COPIED = ["packages", "docs", "scripts", "package.json", "tsconfig.base.json", "vitest.config.ts", "README.md"];

/**
 * A copy of the repository whose sources may be changed. The installed packages are linked. Disposing of it removes it.
 */
export class TreeCopy implements Disposable {
  readonly root: string;

  /** `root`: a folder that does not exist yet. */
  constructor(source: string, root: string) {
    this.root = root;
    mkdirSync(root);
    // Tests of permissions start processes of another user, who must get to the sources.
    chmodSync(this.root, 0o711);
    for (const name of COPIED.filter((name) => existsSync(join(source, name)))) {
      cpSync(join(source, name), join(this.root, name), {
        recursive: true,
        filter: (path) => !/[/\\](?:dist|node_modules)$/.test(path),
      });
    }
    this.#linkModules(join(source, "node_modules"));
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Everything is linked, but our own packages are the copy's. */
  #linkModules(installed: string): void {
    const modules = join(this.root, "node_modules");
    mkdirSync(join(modules, "@holdfast"), { recursive: true });
    for (const name of readdirSync(installed)) {
      if (name === "holdfast" || name === "@holdfast" || (name.startsWith(".") && name !== ".bin")) continue;
      symlinkSync(join(installed, name), join(modules, name), "junction");
    }
    symlinkSync(join(this.root, "packages/holdfast"), join(modules, "holdfast"), "junction");
    for (const name of readdirSync(join(this.root, "packages"))) {
      if (name !== "holdfast")
        symlinkSync(join(this.root, "packages", name), join(modules, "@holdfast", name), "junction");
    }
  }
}
