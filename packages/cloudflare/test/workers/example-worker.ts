/** The example, under the name that `workerd.ts` binds. */
export { Agent as TestObject } from "../../../../examples/cloudflare.ts";

import example from "../../../../examples/cloudflare.ts";
import type { Env } from "./namespace.ts";

export default {
  fetch: (request: Request, { OBJECTS }: Env): Promise<Response> =>
    example.fetch(request, { AGENTS: { getByName: (name) => OBJECTS.get(OBJECTS.idFromName(name)) } }),
};
