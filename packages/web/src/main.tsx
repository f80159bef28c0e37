import { render } from "preact";
import { App, Refused } from "./App.tsx";
import { get, Refusal } from "./api/http.ts";
import { signIn } from "./api/sign-in.ts";
import type { Server } from "./api/wire.ts";
import { followAddress } from "./state/route.ts";
import { applyTheme } from "./state/theme.ts";
import "./theme/tokens.css";
import "./theme/base.css";
import "./theme/list.css";
import "./theme/session.css";
import "./theme/transcript.css";
import "./theme/timeline.css";
import "./theme/panels.css";

const root = document.querySelector("#app")!;

async function start(): Promise<void> {
  applyTheme();
  try {
    await signIn(window.location, window.history);
    followAddress();
    render(<App server={await get<Server>("/server")} />, root);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    render(<Refused refusal={error} />, root);
  }
}

void start();
