import { expect, test } from "vitest";
import { RemoteHost } from "../../src/client/index.ts";
import { ServerStage } from "../server-stage.ts";

test("a prompt over HTTP runs a turn", async () => {
  await using stage = await ServerStage.start();
  const id = await stage.session({ title: "first" });
  const seen: string[] = [];
  const following = (async () => {
    for await (const { name, data, lastId } of stage.client.events(id)) {
      seen.push(`${name} ${lastId} ${data.slice(0, 160)}`);
      if (name === "record" && data.includes("turn.ended")) return;
    }
  })();
  expect(await stage.client.call("startTurn", { params: { id }, body: { text: "hello there" } })).toEqual({
    outcome: "started",
  });
  await following;
  console.log(seen.join("\n"));
  const session = await stage.client.call("getSession", { params: { id } });
  console.log(JSON.stringify(session, null, 1).slice(0, 1500));
  console.log(JSON.stringify(await stage.client.call("getTimeline", { params: { id } }), null, 0));
  console.log(JSON.stringify(await stage.client.call("getUsage", { params: { id } }), null, 0));
  const remote = await RemoteHost.connect(stage.client);
  const chat = await remote.open(id);
  expect(chat.state).toEqual((await stage.host.open(id)).state);
  await remote.close();
});
