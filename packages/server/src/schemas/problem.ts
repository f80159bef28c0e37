import { z } from "zod";

/** RFC 9457. */
export const problem = z
  .object({
    type: z.string().describe("`urn:holdfast:error:` and the code."),
    title: z.string().describe("The code in words."),
    status: z.int(),
    code: z.string().describe("One of docs/ERRORS.md. Programs decide by this member."),
    detail: z.string().describe("What happened, whether data is safe, and what to do next."),
    facts: z.record(z.string(), z.unknown()).optional().describe("Small values for programs."),
  })
  .meta({ id: "Problem", description: "An error, as RFC 9457 describes it (`application/problem+json`)." });

export type Problem = z.infer<typeof problem>;
