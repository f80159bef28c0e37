import { styleText } from "node:util";

/** The styles of this program, named by what they mean. */
const STYLES = {
  heading: "bold",
  faint: "dim",
  good: "green",
  warning: "yellow",
  bad: "red",
  name: "cyan",
} as const;

export type Style = keyof typeof STYLES;

/** Styles text if its stream is a terminal that shows colours; NO_COLOR and FORCE_COLOR override this. */
export type Paint = (style: Style, text: string) => string;

export function paintFor(stream: NodeJS.WriteStream): Paint {
  return (style, text) => styleText(STYLES[style], text, { stream });
}
