import type { System } from "./system.ts";
import { cloudflare } from "./systems/cloudflare.ts";
import { dbos } from "./systems/dbos.ts";
import { holdfast } from "./systems/holdfast.ts";
import { restate } from "./systems/restate.ts";
import { workflow, workflowPostgres } from "./systems/workflow.ts";

export const systems: readonly System[] = [holdfast, workflow, workflowPostgres, cloudflare, dbos, restate];
