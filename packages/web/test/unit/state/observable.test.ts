import { h, render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import { Observable, useValue } from "../../../src/state/observable.ts";

afterEach(() => vi.unstubAllGlobals());

/** As much of a document as it takes to show a text. */
class Place {
  readonly nodeType = 1;
  readonly childNodes: { data: string }[] = [];
  get firstChild() {
    return this.childNodes[0] ?? null;
  }
  insertBefore(node: { data: string }): void {
    this.childNodes.push(node);
  }
  get text(): string {
    return this.childNodes.map(({ data }) => data).join("");
  }
}

test("a value that changes between the drawing and the subscription is drawn", async () => {
  vi.stubGlobal("document", { createTextNode: (data: string) => ({ nodeType: 3, data }) });
  const value = new Observable("before");
  const place = new Place();
  render(
    h(() => useValue(value), null),
    place as never,
  );
  expect(place.text).toBe("before");
  // A component subscribes after the browser has painted, which may take a while.
  value.set("after");
  await vi.waitFor(() => expect(place.text).toBe("after"), { timeout: 60_000 });
});
