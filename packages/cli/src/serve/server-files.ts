import { randomBytes } from "node:crypto";
import { linkSync, lstatSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { KeptShare, ShareFile } from "@holdfast/server";
import { CommandError, EXIT } from "../exit.ts";
import { findOwnFolder, makeOwnFolder } from "../own-folder.ts";
import { locked, replaceFile } from "../shared-file.ts";
import { here, stateFolder, storeIdentity, type UserEnvironment } from "../trust/state-folder.ts";
import { readOwnFile } from "../trust/trust.ts";

/** What the servers of this user keep: a token, the read-only tokens, and where each of them listens. */

const NAMES = ["holdfast", "server"];
const TOKEN = /^[\w-]{20,200}$/;
/** The server waits for another process meanwhile, and answers nobody. */
const SHARES_PATIENCE_MS = 1000;

/** A server that runs on this machine. */
export interface RunningServer {
  readonly pid: number;
  readonly url: string;
  /** The identity of its store. */
  readonly store: string | null;
}

/** The token of this user's servers, made at first start. Throws CommandError PATH_UNSAFE. */
export function serverToken(around: UserEnvironment = here): string {
  return tokenIn(tokenPath("token", around));
}

/** Where a token of this user's servers is kept. `mcp-token` is that of `holdfast mcp serve`, which only reads. */
export function tokenPath(name: "token" | "mcp-token", around: UserEnvironment = here): string {
  return join(folder(around), name);
}

/** The token in this file, made if there is none. Throws CommandError PATH_UNSAFE. */
export function tokenIn(path: string): string {
  return readToken(path) ?? makeToken(path);
}

/** The same; null if no server has been started yet. */
export function knownToken(around: UserEnvironment = here): string | null {
  const root = stateFolder(around);
  const found = root === null ? null : findOwnFolder(root, NAMES);
  return typeof found === "string" ? readToken(join(found, "token")) : null;
}

function readToken(path: string): string | null {
  const { text, why } = readOwnFile(path);
  if (why !== undefined) throw unsafe(path, why);
  if (text === undefined) return null;
  if (process.getuid && (lstatSync(path).mode & 0o077) !== 0) throw unsafe(path, "can be read by other users");
  const token = text.trim();
  if (!TOKEN.test(token)) throw unsafe(path, "does not hold a token");
  return token;
}

/** All of it or nothing, and never in place of another one: two servers may start at once. */
function makeToken(path: string): string {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const token = randomBytes(32).toString("base64url");
  try {
    writeFileSync(temporary, `${token}\n`, { flag: "wx", mode: 0o600 });
    linkSync(temporary, path);
    return token;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return readToken(path) ?? makeToken(path);
}

/** The read-only tokens for the sessions of a store; null if it does not outlive the process. */
export function shareFile(storeUrl: string, around: UserEnvironment = here): ShareFile | null {
  const identity = storeIdentity(storeUrl);
  if (identity === null) return null;
  const path = join(folder(around), `shares-${identity}.json`);
  const load = (): readonly KeptShare[] => {
    const { text, why } = readOwnFile(path);
    if (why !== undefined) throw unsafe(path, why);
    return text === undefined ? [] : sharesIn(path, text);
  };
  return {
    load,
    change: (edit) =>
      locked(path, SHARES_PATIENCE_MS, () => {
        replaceFile(path, `${JSON.stringify({ version: 1, shares: edit(load()) })}\n`, () => {});
      }),
  };
}

function sharesIn(path: string, text: string): readonly KeptShare[] {
  try {
    const { version, shares } = JSON.parse(text) as { readonly version?: unknown; readonly shares?: unknown };
    if (version === 1 && Array.isArray(shares)) return shares.filter(isShare);
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) throw error;
  }
  throw unsafe(path, "is not a list of read-only tokens");
}

/** Anything else opens nothing. */
function isShare(one: unknown): one is KeptShare {
  const { id, session, digest, cookieDigest, createdAt, expiresAt } = (one ?? {}) as Record<string, unknown>;
  const isTime = (time: unknown): boolean => typeof time === "string" && !Number.isNaN(Date.parse(time));
  return (
    [id, session, digest, cookieDigest ?? ""].every((text) => typeof text === "string") &&
    isTime(createdAt) &&
    (expiresAt === null || isTime(expiresAt))
  );
}

/** Tells other processes of this user where this one listens. Returns a function that takes it back. */
export function announce(url: string, storeUrl: string, around: UserEnvironment = here): () => void {
  const path = join(makeOwnFolder(rootOf(around), [...NAMES, "running"]), `${process.pid}.json`);
  const server: RunningServer = { pid: process.pid, url, store: storeIdentity(storeUrl) };
  replaceFile(path, `${JSON.stringify(server)}\n`, () => {});
  return () => rmSync(path, { force: true });
}

/**
 * A file that leads a browser to the web page. Everyone on this machine can read the command line of the program that
 * opens a browser, so the token is not there, but in a file that only this user can read.
 */
export function makePageLink(url: string, token: string, around: UserEnvironment = here): string {
  const path = join(folder(around), `open-${new URL(url).port}.html`);
  const address = `${url}/#token=${token}`;
  const lines = [
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Holdfast</title>',
    `<meta http-equiv="refresh" content="0; url=${address}"><a href="${address}">Open the page</a>`,
  ];
  replaceFile(path, `${lines.join("\n")}\n`, () => {});
  return path;
}

/** The servers of this user on this machine that are alive. */
export function runningServers(around: UserEnvironment = here): RunningServer[] {
  const root = stateFolder(around);
  const found = root === null ? null : findOwnFolder(root, [...NAMES, "running"]);
  if (typeof found !== "string") return [];
  return readdirSync(found).flatMap((name) => {
    const { text } = name.endsWith(".json") ? readOwnFile(join(found, name)) : {};
    const server = text === undefined ? null : serverIn(text);
    if (server && isAlive(server.pid)) return [server];
    if (server) rmSync(join(found, name), { force: true });
    return [];
  });
}

/** The server that has a session open, by the process that holds it; null if that is not one of this user's. */
export function serverOf(holder: unknown, around: UserEnvironment = here): RunningServer | null {
  const { pid, host } = (holder ?? {}) as { readonly pid?: unknown; readonly host?: unknown };
  if (host !== hostname()) return null;
  return runningServers(around).find((server) => server.pid === pid) ?? null;
}

function serverIn(text: string): RunningServer | null {
  try {
    const found = JSON.parse(text) as Partial<RunningServer> | null;
    const { pid, url, store } = found ?? {};
    if (typeof pid !== "number" || typeof url !== "string" || !/^http:\/\//.test(url)) return null;
    return { pid, url, store: typeof store === "string" ? store : null };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** A process of another user is not a server of this one, but has the number of one that is gone. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}

function folder(around: UserEnvironment): string {
  return makeOwnFolder(rootOf(around), NAMES);
}

function rootOf(around: UserEnvironment): string {
  const root = stateFolder(around);
  if (root !== null) return root;
  const message =
    "This user has no home folder, so the server's token cannot be kept. Set XDG_STATE_HOME to an absolute path. Nothing was touched.";
  throw new CommandError(EXIT.usage, "USAGE", message);
}

function unsafe(path: string, why: string): CommandError {
  const message = `${path} ${why}, so it is not used. Nothing was touched. Remove it: the next "holdfast serve" makes a new one.`;
  return new CommandError(EXIT.store, "PATH_UNSAFE", message);
}
