import { expect, test, vi } from "vitest";
import { ChatServer, guideFiles, NEXT_SERVER } from "../chat-server.ts";
import { textOf } from "../page.ts";

/** The servers of the guide that are not Hono's: a real Express, and the route for Next.js, called as Next.js does. */

const EXPRESS = guideFiles()["express.ts"]!;
const parsing = (parser: string): string => EXPRESS.replace("express();", `express().use(${parser});`);

test.each([
  ["Express", EXPRESS],
  ["Express, behind express.json()", parsing("express.json()")],
  ["Express, behind express.raw()", parsing('express.raw({ type: "*/*" })')],
  ["Next.js", NEXT_SERVER],
])("%s: POST streams, GET resumes, DELETE stops", async (_, code) => {
  await using server = new ChatServer({ ...guideFiles(), "server.ts": code });
  await server.start();
  const { page } = await server.load();
  const sent = page.sendMessage({ text: "Please look." });
  await server.says("speaking");
  await vi.waitFor(() => expect(page.text, "before it is complete").toBe("I look first.That "), 60_000);

  const { page: second, resumed } = await server.load();
  await vi.waitFor(() => expect(second.text).toBe("I look first.That "), 60_000);
  const again = await server.post({ message: page.messages[0] });
  expect([again.status, again.headers.get("x-holdfast-repeated")]).toEqual([200, "true"]);
  expect(again.headers.get("content-type")).toContain("text/event-stream");

  expect((await server.state()).status).toBe("running");
  const stopped = await fetch(`${server.url}/api/chat/${server.id}`, { method: "DELETE" });
  expect([stopped.status, await stopped.text()]).toEqual([204, ""]);
  await Promise.all([sent, resumed, again.text()]);
  await vi.waitFor(async () => expect((await server.state()).status).toBe("ready"), 60_000);
  expect((await server.transcript()).map(textOf)).toEqual(["Please look.", "I look first.That "]);
  expect((await fetch(`${server.url}/api/chat/${server.id}/stream`)).status, "nothing runs").toBe(204);

  server.release();
  const { page: third } = await server.load();
  await third.sendMessage({ text: "And now?" });
  expect(third.error).toBe(undefined);
  expect(third.text).toMatch(/^That was prompt \d: all is well\.$/);
  expect(third.messages.map(textOf)).toEqual((await server.transcript()).map(textOf));
  expect((await fetch(`${server.url}/api/chat/${server.id}/nothing`)).status).toBe(404);
  expect((await fetch(`${server.url}/api/chat`, { method: "PUT", body: "{}" })).status).toBe(405);
  expect((await fetch(`${server.url}/api/chat`, { method: "POST", body: "{}" })).status).toBe(415);
  expect(server.lines("effects")).toHaveLength(1);
});
