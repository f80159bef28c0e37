import { expect, test } from "vitest";
import { Stage, text } from "../host-stage.ts";

const IMAGE = { name: "shot.png", mediaType: "image/png", data: "iVBORw0KGgo=" };

test("images of a prompt are recorded, sent to the model, and shown as files", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("a picture")]]);
  await chat.prompt("what is this?", [IMAGE]);
  await chat.settled();
  const sent = JSON.stringify(chat.model.prompts.at(-1));
  expect(sent).toContain("what is this?");
  expect(sent).toContain("image/png");
  expect(chat.state.items[0]).toMatchObject({
    kind: "prompt",
    text: "what is this?",
    files: [{ name: "shot.png", mediaType: "image/png" }],
  });
  await chat.close();
  const again = await stage.chat([[text("the same")]], { id: chat.id });
  await again.prompt("and now?");
  await again.settled();
  expect(JSON.stringify(again.model.prompts.at(-1)), "after a restart too").toContain("image/png");
});
