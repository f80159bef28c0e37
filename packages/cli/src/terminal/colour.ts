import { styleText } from "node:util";

/** The few styles of this program, by what they mean. */
const STYLES = {
  heading: "bold",
  faint: "dim",
  good: "green",
  warning: "yellow",
  bad: "red",
  name: "cyan",
} as const;

export type Style = keyof typeof STYLES;

/** Styles a text if its stream is a terminal that shows colours; NO_COLOR and FORCE_COLOR have the last word. */
export type Paint = (style: Style, text: string) => string;

export function paintFor(stream: NodeJS.WriteStream): Paint {
  return (style, text) => styleText(STYLES[style], text, { stream });
}
