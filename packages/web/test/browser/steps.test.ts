import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROWS, rowTops } from "../../src/timeline/draw.ts";
import { Stage } from "./stage.ts";

const stage = new Stage();
beforeAll(async () => {
  stage.tell(join(import.meta.dirname, "steps-story.ts"), ["killed", "resumed"]);
  await stage.serve();
});
afterAll(() => stage[Symbol.asyncDispose]());

test("the steps of a tool are bars inside its bar, and its details name them: of the run that died, and of the next one", async () => {
  const page = await stage.page(`/${await stage.idOf("Ship order 7")}`);
  await page.locator(".swatch-steps").waitFor();
  const canvas = page.locator(".timeline canvas");
  const { tops } = rowTops({ withSteps: [false, false, true] });
  const top = tops[2]!;
  /** The colours along the strip of the steps, without the ground between them. */
  const colours = () =>
    canvas.evaluate(
      (element: HTMLCanvasElement, middle) => {
        const context = element.getContext("2d")!;
        const style = getComputedStyle(element);
        const names = ["ground", "tool", "tool-failed", "tool-unknown"];
        // A canvas gives every colour back in one form.
        const pen = document.createElement("canvas").getContext("2d")!;
        const colourOf = (name: string): unknown => {
          pen.fillStyle = style.getPropertyValue(`--tl-${name}`).trim();
          return pen.fillStyle;
        };
        const known = new Map(names.map((name) => [colourOf(name), name]));
        const ratio = element.width / element.clientWidth;
        const { data } = context.getImageData(0, Math.round(middle * ratio), element.width, 1);
        const seen: string[] = [];
        for (let at = 0; at < data.length; at += 4) {
          const parts = [...data.slice(at, at + 3)].map((part) => part.toString(16).padStart(2, "0"));
          const name = known.get(`#${parts.join("")}`);
          if (name !== undefined && name !== seen.at(-1)) seen.push(name);
        }
        return seen.filter((name) => name !== "ground");
      },
      top + ROWS.tool + ROWS.steps / 2,
    );
  const killed = ["tool", "tool", "tool-unknown"];
  // Its payment was settled by the probe; its label failed.
  const resumed = ["tool", "tool-failed", "tool"];
  await expect.poll(colours).toEqual([...killed, ...resumed]);

  const detailsAt = async (share: number): Promise<string[]> => {
    const { x, y, width } = (await canvas.boundingBox())!;
    await page.mouse.move(x + width * share, y + top + 4);
    return (await page.locator(".timeline-tip").allInnerTexts()).join("").split("\n");
  };
  await expect
    .poll(() => detailsAt(0.3))
    .toEqual([
      "ship orders/7.json",
      "outcome unknown · 7.0 s",
      "reserve: done · 2.5 s",
      "wrap: done · 1.5 s",
      "charge: outcome unknown · 3.0 s",
    ]);
  await expect
    .poll(() => detailsAt(0.8))
    .toEqual([
      "ship",
      "done · 6.0 s",
      "charge: done · settled by asking the service: its outcome is known",
      "label: failed · 1.5 s",
      "mail: done · 2.5 s",
      "ship ran again and did not ask for steps that an earlier run had recorded: wrap. If their names have changed, their work may have been done twice.",
    ]);
  expect(page.problems).toEqual([]);
});
