import { z } from "zod";
import { sessionId } from "./session.ts";

/** What several operations take. */

export const id = z.strictObject({ id: sessionId });
/** The session does not exist, or another process has it open, or its turn does not allow it. */
export const CHANGES = [404, 409, 422, 503] as const;
export const flag = z.stringbool({ truthy: ["true", "1"], falsy: ["false", "0"] });
export const limit = (fallback: number, most: number) => z.coerce.number().int().min(1).max(most).default(fallback);
export const cwd = z.string().min(1).max(4096).describe("An absolute path.");
export const model = z.string().min(1).max(200).describe("`provider/name`, or `offline`.");
