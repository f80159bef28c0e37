/** Line icons, 16 by 16, in the colour of the text around them. */
const PATHS = {
  cross: "M4 4l8 8M12 4l-8 8",
  power: "M8 2.5v5M4.6 4.7a4.8 4.8 0 1 0 6.8 0",
  stop: "M4.5 4.5h7v7h-7z",
  skip: "M3.5 8h.1M7 8h.1M10.5 4.5 14 8l-3.5 3.5",
  warning: "M8 2.8 14 13H2zM8 6.8v3M8 11.4v.2",
  hand: "M8 3v5l3 2M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
  play: "M5.5 3.8 12 8l-6.5 4.2z",
  fold: "M3 5h7a3 3 0 0 1 0 6H5M5 3 3 5l2 2M7 9l-2 2 2 2",
  wrench: "M10.5 2.8a3.2 3.2 0 0 0-3.6 4.4L3 11.1 4.9 13l3.9-3.9a3.2 3.2 0 0 0 4.4-3.6L11 7.6 8.4 5z",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 5V3h2M11.5 3h2v2M13.5 11v2h-2M4.5 13h-2v-2M5 8h6",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14",
  back: "M9.5 3.5 5 8l4.5 4.5",
  down: "M3.5 6 8 10.5 12.5 6",
  right: "M6 3.5 10.5 8 6 12.5",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  fork: "M4.5 3v2.5c0 2 3.5 2 3.5 4.5M11.5 3v2.5c0 2-3.5 2-3.5 4.5M8 10v3.5",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  folder: "M2.5 4h4l1.5 2h5.5v7h-11z",
  clock: "M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
  check: "M3.5 8.5 6.5 11.5 12.5 4.5",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1M4.5 11.5l-1.1 1.1",
  moon: "M12.8 9.8A5.4 5.4 0 0 1 6.2 3.2a5.4 5.4 0 1 0 6.6 6.6z",
  help: "M5.8 6a2.2 2.2 0 1 1 3 2c-.6.3-.8.7-.8 1.4M8 11.6v.2M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
  send: "M3 8h9M8.5 4 12.5 8l-4 4",
  image: "M2.5 3.5h11v9h-11zM4 11l3-3.5 2 2 1.5-1.5 2 3M10.6 6h.1",
  close: "M4 4l8 8M12 4l-8 8",
  tool: "M3 4.5 6 8l-3 3.5M8 12h5",
  branch: "M4 2.5v11M4 6h4a2 2 0 0 1 2 2v0a2 2 0 0 0 2 2h1.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
