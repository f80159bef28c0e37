import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Chunk, svgOf } from "../../../../../scripts/record-svg.ts";

const OPTIONS = {
  columns: 20,
  rows: 2,
  title: "a < b",
  description: "c & d",
  holdMs: 1000,
  silenceMsMax: 500,
};

function texts(svg: string): string[] {
  return [...svg.matchAll(/<text class="a (k\d+)([^"]*)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</g)].map(
    ([, slot, style, x, y, text]) => `${slot}${style} ${x},${y} ${text}`,
  );
}

describe("the recording", () => {
  test("words appear when they came, in their colours and columns; silences are shortened", () => {
    const chunks: Chunk[] = [
      { ms: 0, text: "one \x1b[32m\x1b[1mtwo\x1b[22m\x1b[39m\r\n" },
      { ms: 200, text: "  <three>" },
      { ms: 60_000, text: " & four\r\n" },
    ];
    expect(texts(svgOf(chunks, OPTIONS))).toEqual([
      "k0 0,14 one",
      "k0 b g 33.6,14 two",
      "k2 16.8,33 &lt;three&gt;",
      "k7 84,33 &amp; four",
    ]);
  });

  test("a ground fills its cells, and the picture ends at the last line", () => {
    const svg = svgOf([{ ms: 0, text: "a\nb\n\x1b[41m\x1b[97m KILL \x1b[39m\x1b[49m\n" }], OPTIONS);
    expect(svg).toContain('<rect class="a k0 R" x="0" y="38" width="50.4"');
    // What does not animate shows the end.
    expect(svg).toContain("#s{transform:translateY(-19px)");
    expect(svg).toContain("prefers-reduced-motion");
    expect(svg).toContain('<title id="t">a &lt; b</title><desc id="e">c &amp; d</desc>');
  });

  test("docs/demo.svg shows a receipt that balances, runs no script and loads nothing", () => {
    const svg = readFileSync(join(import.meta.dirname, "../../../../../docs/demo.svg"), "utf8");
    expect(svg.length).toBeLessThan(200_000);
    expect(svg.match(/KILL -9/g)?.length).toBeGreaterThanOrEqual(5);
    expect(svg).toContain("nothing acknowledged lost.");
    expect(svg).not.toMatch(/<script|href=|url\(|@import|<NO</);
  });
});
