import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

type Options = Omit<
  VirtualizerOptions<HTMLElement, HTMLElement>,
  "observeElementRect" | "observeElementOffset" | "scrollToFn"
>;

/** TanStack Virtual for Preact: only the rows on the screen, and a few around them, are in the page. */
export function useVirtual(options: Options): Virtualizer<HTMLElement, HTMLElement> {
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0);
  const resolved: VirtualizerOptions<HTMLElement, HTMLElement> = {
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    ...options,
    onChange: (instance, isScrolling) => {
      redraw();
      options.onChange?.(instance, isScrolling);
    },
  };
  const [virtual] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(resolved));
  virtual.setOptions(resolved);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}
