import type { PackageRooms } from "./rooms.ts";

/** The rooms of the server, from the bottom to the top, with what each may import. */
export const SERVER_ROOMS: PackageRooms = {
  sources: "packages/server/src/",
  base: [],
  rooms: {
    // The agent, as a screen, a script or a server sees it, and what all of them say of it.
    "contract/": [],
    // What a call changes in a file: for the command and the page.
    "edits/": ["contract/"],
    // Every operation and event, once: they validate requests and document the interface.
    "schemas/": [],
    "openapi/": ["schemas/"],
    // How a server proves itself to a client before the token is sent, on both sides.
    "proof/": [],
    // Who may ask for what.
    "access/": ["proof/", "schemas/"],
    // What is read from a journal without opening its session.
    "reading/": ["contract/", "schemas/"],
    // The sessions that this server has open, and those who follow them.
    "events/": ["access/", "contract/", "schemas/"],
    "hosting/": ["access/", "contract/", "events/"],
    // Sessions that agents in other processes record.
    "recordings/": ["access/", "schemas/"],
    // One function for each operation; then the application around them, on a socket.
    "handlers/": [
      "access/",
      "contract/",
      "events/",
      "hosting/",
      "openapi/",
      "proof/",
      "reading/",
      "recordings/",
      "schemas/",
    ],
    "http/": ["access/", "contract/", "handlers/", "hosting/", "proof/", "reading/", "recordings/", "schemas/"],
    // The other side of the connection.
    "client/": ["contract/", "proof/", "schemas/"],
    "index.ts": ["access/", "http/", "openapi/", "schemas/"],
    "internal.ts": ["access/", "client/", "http/"],
  },
};
