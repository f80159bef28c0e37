import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";

/** A file of the web page. */
export interface PageFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: Readonly<Record<string, string>>;
}

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

/** Nothing inline, and nothing from the network. Images in messages are `data:` or `blob:`. */
export const PAGE_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The built files of the page by path, read once: a request can reach nothing else on the disk. */
export function readPage(folder: string): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = new Uint8Array(readFileSync(path));
    const name = `/${relative(folder, path).split(sep).join("/")}`;
    const isDocument = name.endsWith(".html");
    // The names of built scripts and styles change with their content.
    const isHashed = /-[\w-]{8,}\.\w+$/.test(name);
    const headers = {
      "content-type": type,
      "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
      etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
      ...(isDocument ? { "content-security-policy": PAGE_POLICY } : {}),
    };
    files.set(name === "/index.html" ? "/" : name, { bytes, headers });
  }
  return files;
}
