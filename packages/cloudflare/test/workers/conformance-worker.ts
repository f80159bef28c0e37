import { DurableObject } from "cloudflare:workers";
import { conformance } from "@holdfast/testkit";
import type { Env } from "./namespace.ts";
import { type SubjectName, subjectNamed } from "./subjects.ts";

/** Runs cases of the conformance suite, each in an object of its own: `/?subject=memory&case=<name>`. */
export class TestObject extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    const query = new URL(request.url).searchParams;
    const subject = subjectNamed(query.get("subject") as SubjectName, this.ctx);
    const found = conformance(subject).find(({ name }) => name === query.get("case"))!;
    try {
      await found.execute();
      return new Response("passed");
    } catch (error) {
      return new Response(String((error as Error).stack ?? error));
    }
  }
}

export default {
  fetch: (request: Request, { OBJECTS }: Env): Promise<Response> => OBJECTS.get(OBJECTS.newUniqueId()).fetch(request),
};
