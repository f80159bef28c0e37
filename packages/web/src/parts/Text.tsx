import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { countWords } from "../text/durations.ts";
import { markdownFragment } from "../text/markdown.ts";
import { shorten, visible } from "../text/visible.ts";

/** How much of a message is laid out before the person asks for the rest. */
const CHARACTERS_MAX = 12_000;

/** Markdown, sanitised. */
export function Markdown({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const short = isWhole ? { text, rest: 0 } : shorten(text, 400, CHARACTERS_MAX);
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const shown = visible(short.text);
    const fragment = markdownFragment(shown);
    element.current!.replaceChildren(fragment ?? shown);
    element.current!.classList.toggle("as-is", fragment === null);
  }, [short.text]);
  return (
    <>
      <div class="markdown" dir="auto" ref={element} />
      {short.rest > 0 ? <More rest={short.rest} onMore={() => setWhole(true)} /> : null}
    </>
  );
}

/** Text as it is: what a person typed, or what a tool printed. */
export function Plain({
  text,
  lines = 400,
  class: name = "plain",
}: {
  readonly text: string;
  readonly lines?: number;
  readonly class?: string;
}) {
  const [isWhole, setWhole] = useState(false);
  const short = isWhole ? { text, rest: 0 } : shorten(text, lines, CHARACTERS_MAX);
  return (
    <>
      <div class={name} dir="auto">
        {visible(short.text)}
      </div>
      {short.rest > 0 ? <More rest={short.rest} onMore={() => setWhole(true)} /> : null}
    </>
  );
}

function More({ rest, onMore }: { readonly rest: number; readonly onMore: () => void }) {
  return (
    <button type="button" class="more-button" onClick={onMore}>
      Show {countWords(rest, "more character")}
    </button>
  );
}
