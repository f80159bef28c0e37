import { CommandError, EXIT } from "../exit.ts";
import { tokenIn, tokenPath } from "../serve/server-files.ts";

const TOKEN = /^[\w-]{32,256}$/;

export interface Token {
  readonly value: string;
  /** Where it comes from, for people. */
  readonly from: string;
}

/** The token of HTTP clients: HOLDFAST_MCP_TOKEN, or a file that only this user can read, made at the first start. */
export function findToken(env: Readonly<Record<string, string | undefined>> = process.env): Token {
  const given = env["HOLDFAST_MCP_TOKEN"];
  if (given === undefined || given === "") {
    const from = tokenPath("mcp-token");
    return { value: tokenIn(from), from };
  }
  if (TOKEN.test(given)) return { value: given, from: "HOLDFAST_MCP_TOKEN" };
  const message = `The token in HOLDFAST_MCP_TOKEN is not valid: it must be 32 to 256 letters, digits, "-" and "_". Nothing was started.`;
  throw new CommandError(EXIT.usage, "CONFIG_INVALID", message);
}
