import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import type { Target } from "@holdfast/server/internal/contract";
import { isOwn } from "../paths/own-store.ts";
import { PATH_TOOLS, realPath } from "../paths/real-path.ts";
import type { FileContext } from "./context.ts";
import { heldText } from "./editor-file.ts";
import { readWhole } from "./regular-file.ts";

export type { Target };

/** What a call refers to, at one moment. */
export interface TargetSnapshot {
  /**
   * The real path of the call; for a command, the working folder. Null: the call has no path, or it cannot be resolved.
   */
  readonly path: string | null;
  readonly target: Target;
  /** SHA-256 of the tool's name, its input, the real path and the target. A different digest means a different call. */
  readonly digest: string;
}

export interface FileSnapshot extends TargetSnapshot {
  /** The content of a file that the call changes; null if it was not read. */
  readonly bytes: Buffer | null;
}

interface Call {
  readonly name: string;
  readonly input: unknown;
}

const BYTES_MAX = 64 * 1024 * 1024;
const NONE: Target = { kind: "none" };

/** Inspects what a call refers to. Never throws because of what it finds. */
export async function inspectTarget(
  { cwd, own = null, editor = null }: Pick<FileContext, "cwd" | "own" | "editor">,
  call: Call,
): Promise<FileSnapshot> {
  const given = pathOf(call);
  let path: string | null = null;
  let target: Target = NONE;
  let bytes: Buffer | null = null;
  if (given !== null) {
    try {
      path = realPath(cwd, given);
      // Opening and closing a file of the open store would release its lock (S13, S21).
      if (own && isOwn(own, path)) target = { kind: "unknown", why: "it belongs to the agent's own store" };
      else {
        const isChanged = call.name === "write" || call.name === "edit";
        const held = isChanged ? await heldText({ cwd, editor }, path) : null;
        ({ target, bytes } = held && "text" in held ? heldTarget(held.text) : await targetAt(path, isChanged));
      }
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      target = { kind: "unknown", why: error.message };
    }
  }
  return { path, target, digest: digestOf(call, path, target), bytes };
}

export function digestOf({ name, input }: Call, path: string | null, target: Target): string {
  const text = JSON.stringify([name, canonical(input), path, canonical(target)]);
  return createHash("sha256").update(text).digest("hex");
}

/** Sorts members, so that their order does not change the digest. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, one]) => one !== undefined);
  return members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, canonical(one)]);
}

function pathOf({ name, input }: Call): string | null {
  if (name === "shell") return ".";
  if (!PATH_TOOLS.has(name)) return null;
  const path = typeof input === "object" && input !== null ? (input as { path?: unknown }).path : undefined;
  if (typeof path === "string") return path;
  return path === undefined && (name === "list" || name === "search") ? "." : null;
}

/** The editor may save the text at any time, and so give the file on disk another identity. */
function heldTarget(text: string): { target: Target; bytes: Buffer } {
  const bytes = Buffer.from(text, "utf8");
  return { target: { kind: "file", identity: "editor", bytes: bytes.length, version: versionOf(bytes) }, bytes };
}

function versionOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

async function targetAt(path: string, isChanged: boolean): Promise<{ target: Target; bytes: Buffer | null }> {
  let found: BigIntStats;
  try {
    found = await lstat(path, { bigint: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { target: NONE, bytes: null };
    throw error;
  }
  const identity = `${found.dev}:${found.ino}`;
  if (!found.isFile()) return { target: { kind: found.isDirectory() ? "folder" : "other", identity }, bytes: null };
  if (!isChanged) return { target: { kind: "file", identity }, bytes: null };
  const bytes = found.size > BYTES_MAX ? null : await readWhole(path, path, BYTES_MAX).catch(unlessSystem);
  const version = bytes ? versionOf(bytes) : `changed:${found.ctimeNs}`;
  return { target: { kind: "file", identity, bytes: Number(found.size), version }, bytes };
}

/** For a file that may be written but not read. */
function unlessSystem(error: unknown): null {
  if (error instanceof Error && "code" in error) return null;
  throw error;
}
