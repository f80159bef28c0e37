import type { PackageRooms } from "./rooms.ts";

/** The rooms of the page, from the bottom to the top, with what each may import. */
export const WEB_ROOMS: PackageRooms = {
  sources: "packages/web/src/",
  base: [],
  rooms: {
    "theme/": [],
    "keys/": [],
    // The server.
    "api/": [],
    // What the page knows; no room below the screen draws anything.
    "state/": ["api/"],
    // Words, made harmless.
    "text/": ["api/"],
    // Things on the screen that know no session.
    "parts/": ["api/", "text/"],
    "timeline/": ["parts/", "state/", "text/"],
    // The three parts of the screen.
    "list/": ["api/", "parts/", "state/", "text/"],
    "side/": ["api/", "parts/", "state/", "text/"],
    "session/": ["api/", "keys/", "parts/", "side/", "state/", "text/", "timeline/"],
    "Toasts.tsx": ["parts/", "state/"],
    "App.tsx": ["api/", "keys/", "list/", "parts/", "session/", "state/", "Toasts.tsx"],
    "main.tsx": ["api/", "App.tsx", "state/", "theme/"],
  },
};
