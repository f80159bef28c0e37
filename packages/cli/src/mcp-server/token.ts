import { randomBytes } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import { makeOwnFolder, whyNotPrivate } from "../own-folder.ts";
import { locked, PATIENCE_MS, replaceFile } from "../shared-file.ts";
import { stateFolder } from "../trust/state-folder.ts";

const NAME = "mcp-token";
const TOKEN = /^[\w-]{32,256}$/;
/** A token, a line end, and nothing that would be worth reading. */
const BYTES_MAX = 1024;

export interface Token {
  readonly value: string;
  /** Where it comes from, for people. */
  readonly from: string;
}

/** The token of HTTP clients: HOLDFAST_MCP_TOKEN, or a file that only this user can read, made at the first start. */
export function findToken(env: Readonly<Record<string, string | undefined>> = process.env): Token {
  const given = env["HOLDFAST_MCP_TOKEN"];
  if (given !== undefined && given !== "") {
    if (!TOKEN.test(given)) throw invalid("HOLDFAST_MCP_TOKEN");
    return { value: given, from: "HOLDFAST_MCP_TOKEN" };
  }
  const root = stateFolder();
  if (root === null)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      "This user has no home for the token file. Nothing was started. Set HOLDFAST_MCP_TOKEN.",
    );
  const path = join(makeOwnFolder(root, ["holdfast"]), NAME);
  locked(path, PATIENCE_MS, () => {
    if (lstatSync(path, { throwIfNoEntry: false })) return;
    replaceFile(path, `${randomBytes(32).toString("base64url")}\n`, () => undefined);
  });
  return { value: readToken(path), from: path };
}

function readToken(path: string): string {
  const found = lstatSync(path);
  const isOpen = process.getuid !== undefined && (found.mode & 0o077) !== 0;
  const why = found.isFile()
    ? (whyNotPrivate(found) ?? (isOpen ? "can be read by other users" : null))
    : "is not a file";
  if (why !== null)
    throw new CommandError(
      EXIT.store,
      "PATH_UNSAFE",
      `${path} ${why}. It holds the token of the MCP server, so it must be a file that only you can read. Nothing was started. Remove it, and a new token is made.`,
    );
  const token = found.size > BYTES_MAX ? "" : readFileSync(path, "utf8").trim();
  if (!TOKEN.test(token)) throw invalid(path);
  return token;
}

function invalid(where: string): CommandError {
  const message = `The token in ${where} is not valid: it must be 32 to 256 letters, digits, "-" and "_". Nothing was started.`;
  return new CommandError(EXIT.usage, "CONFIG_INVALID", message);
}
