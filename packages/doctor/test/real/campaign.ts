import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import {
  Door,
  diagnose,
  fix,
  listBackups,
  AGENTS as READERS,
  type Agent as Reader,
  Refused,
  readConversations,
  type SessionPlace,
  sessionsHere,
  undo,
} from "../../src/index.ts";
import { CAMPAIGNS, type Campaign } from "../damage/campaigns.ts";
import { type Random, seeded } from "../damage/line-damage.ts";
import { pick, type SessionDamage } from "../damage/session-damage.ts";
import type { Agent, Place, Unit } from "./agent.ts";
import { AGENTS } from "./agents.ts";
import { complaintsAbout, filesBelow, textBelow } from "./campaign-units.ts";
import { installProgram, type Program } from "./programs.ts";
import { listRecordings, placeRecording, type Recording, ROOT } from "./recording.ts";
import { breachesOf } from "./units.ts";

/**
 * Harms recorded sessions at random places, repairs them, and judges what came out: by the doctor's own reader, and by
 * the program that wrote them.
 */
export interface CampaignOptions {
  /** A program of the laboratory, or a reader whose program is not to be had. */
  readonly agent: string;
  readonly seed: number;
  readonly cases: number;
  /** Only this one of them; its files are kept. */
  readonly only?: number;
  /** Only damage whose name has this in it. */
  readonly damage?: string;
  readonly stories: readonly string[];
  /** Not asked: the doctor's reader alone judges, which takes milliseconds. */
  readonly withoutProgram: boolean;
}

interface Sample {
  readonly recording: Recording;
  readonly id: string;
}

/** Returns how many cases are bad. */
export async function runCampaign(options: CampaignOptions): Promise<number> {
  const lab = AGENTS[options.agent];
  const reader = READERS.find(({ name }) => name === (lab?.format ?? options.agent));
  const campaign = reader && CAMPAIGNS[reader.name];
  if (!reader || !campaign) throw new Error(`There is no campaign for ${options.agent} (test/damage/campaigns.ts).`);
  const program = lab && !options.withoutProgram ? await installProgram(lab.name) : null;
  const samples = listRecordings(reader.name)
    .filter(({ version }) => program === null || version === program.version)
    .filter(({ story }) => options.stories.length === 0 || options.stories.includes(story))
    .flatMap((recording) => recording.sessions.map(({ id }) => ({ recording, id })));
  if (samples.length === 0) throw new Error(`There is no recorded session for ${options.agent}.`);
  const run = new CampaignRun(reader, campaign, lab && program ? { lab, program } : null, options.only !== undefined);

  console.log(`${options.agent}: ${samples.length} recorded sessions, seed ${options.seed}`);
  let failures = 0;
  for (const sample of samples) {
    const complaints = await run.healthy(sample);
    if (complaints.length > 0) failures++;
    for (const complaint of complaints) console.log(`BAD  healthy ${wordsOf(sample)}: ${complaint}`);
  }
  const sums = new Map<string, { good: number; all: number }>();
  const damages = campaign.damages.filter(({ name }) => name.includes(options.damage ?? ""));
  for (let index = 0; index < options.cases; index++) {
    if (options.only !== undefined && options.only !== index) continue;
    const result = await run.harmed(samples, damages, seeded(options.seed * 1_000_003 + index));
    if (result === null) continue;
    const { damage, sample, complaints, found } = result;
    const sum = sums.get(damage.name) ?? { good: 0, all: 0 };
    sums.set(damage.name, { good: sum.good + (complaints.length === 0 ? 1 : 0), all: sum.all + 1 });
    if (complaints.length > 0) {
      failures++;
      console.log(`BAD  case ${index}: ${damage.name} in ${wordsOf(sample)} (found: ${found.join(", ") || "nothing"})`);
      for (const complaint of complaints) console.log(`       ${complaint}`);
    }
  }
  for (const [name, { good, all }] of [...sums].toSorted()) console.log(`${good} of ${all}  ${name}`);
  const all = [...sums.values()].reduce((sum, each) => sum + each.all, 0);
  const good = [...sums.values()].reduce((sum, each) => sum + each.good, 0);
  console.log(`${options.agent}: ${good} of ${all} damaged sessions are whole again; seed ${options.seed}`);
  return failures;
}

const wordsOf = ({ recording: { version, story }, id }: Sample): string => `${version} ${story} ${id.slice(0, 8)}`;

interface Outcome {
  readonly damage: SessionDamage;
  readonly sample: Sample;
  readonly found: readonly string[];
  readonly complaints: readonly string[];
}

class CampaignRun {
  readonly #reader: Reader;
  readonly #campaign: Campaign;
  readonly #judge: { readonly lab: Agent; readonly program: Program } | null;
  /** What the program and the reader show of a healthy session, with the paths of the recordings. */
  readonly #wanted = new Map<string, { readonly shown: readonly Unit[] | null; readonly read: readonly Unit[] }>();

  readonly #keeps: boolean;

  constructor(reader: Reader, campaign: Campaign, judge: { lab: Agent; program: Program } | null, keeps: boolean) {
    this.#keeps = keeps;
    this.#reader = reader;
    this.#campaign = campaign;
    this.#judge = judge;
  }

  /** A healthy session: nothing is reported, nothing is changed. Remembers what is shown of it. */
  async healthy(sample: Sample): Promise<string[]> {
    return this.#placed(sample, async (place, session, root) => {
      const { problems } = await diagnose(this.#reader, session);
      const before = bytesBelow(place.home);
      const fixed = await fix(this.#reader, session, { backups: join(root, "backups") });
      const read = await this.#read(session, root);
      const complaints = problems.map(({ kind }) => `${kind} is reported`);
      if (fixed !== null || differenceOf(before, bytesBelow(place.home)).length > 0) complaints.push("it was changed");
      this.#wanted.set(keyOf(sample), { read, shown: await this.#shown(sample, place, root) });
      return complaints;
    });
  }

  async harmed(samples: readonly Sample[], all: readonly SessionDamage[], random: Random): Promise<Outcome | null> {
    for (let damages = [...all]; damages.length > 0; ) {
      const damage = pick(damages, random);
      damages = damages.filter((other) => other !== damage);
      for (let left = [...samples]; left.length > 0; ) {
        const sample = pick(left, random);
        left = left.filter((other) => other !== sample);
        const outcome = await this.#placed(sample, (place, session, root) =>
          this.#case(sample, damage, place, session, root, random),
        );
        if (outcome !== null) return outcome;
      }
    }
    return null;
  }

  async #case(
    sample: Sample,
    damage: SessionDamage,
    place: Place,
    session: SessionPlace,
    root: string,
    random: Random,
  ): Promise<Outcome | null> {
    const agent = this.#reader;
    if (!damage.harm({ agent, session, home: place.home, random })) return null;
    if (this.#keeps) {
      const kept = mkdtempSync(join(tmpdir(), "holdfast-campaign-"));
      cpSync(place.home, join(kept, "damaged"), { recursive: true });
      console.log(`the damaged home: ${kept}`);
    }
    const complaints: string[] = [];
    const damaged = bytesBelow(place.home);
    const { isLossless, named } = damage;
    const loss = {
      isLossless,
      keepsOrder: named.length > 0,
      damaged: unmoved(textBelow(place.home), root),
      campaign: this.#campaign,
    };
    const wanted = this.#wanted.get(keyOf(sample))!;
    let found: string[] = [];
    try {
      // A damage may have taken the file, or its name.
      const here = this.#sessionOf(place, sample.id, session.path) ?? session;
      found = [...new Set((await diagnose(agent, here)).problems.map(({ kind }) => kind))];
      if (differenceOf(damaged, bytesBelow(place.home)).length > 0) complaints.push("the diagnosis changed a file");
      if (damage.named.length > 0 && !found.some((kind) => (damage.named as readonly string[]).includes(kind)))
        complaints.push(`is not named ${damage.named.join(" or ")}`);
      complaints.push(...(await this.#fixed(here, place, damage, damaged, root)));
      const after = this.#sessionOf(place, sample.id, session.path) ?? here;
      const read = await this.#read(after, root);
      complaints.push(...complaintsAbout(wanted.read, read, loss).map((words) => `read: ${words}`));
      // Of an id that stood in the damaged record alone, only a part may be known.
      const shown = await this.#shown({ ...sample, id: after.id }, place, root);
      if (shown !== null && wanted.shown !== null) {
        complaints.push(...complaintsAbout(wanted.shown, shown, loss).map((words) => `shown: ${words}`));
        const known = breachesOf(wanted.shown);
        complaints.push(...breachesOf(shown).filter((breach) => !known.includes(breach)));
      }
    } catch (error) {
      // A refusal says all there is to say.
      if (error instanceof Error && !(error instanceof Refused)) complaints.push(error.stack ?? error.message);
      else complaints.push(String(error));
    }
    return { damage, sample, found, complaints };
  }

  /** Repairs, repairs again, takes it back, and repairs once more. */
  async #fixed(
    session: SessionPlace,
    { home }: Place,
    { leaves = [] }: SessionDamage,
    damaged: ReadonlyMap<string, Buffer>,
    root: string,
  ): Promise<string[]> {
    const agent = this.#reader;
    const backups = join(root, "backups");
    const left = (kinds: readonly { readonly kind: string }[]): string[] =>
      kinds.map(({ kind }) => kind).filter((kind) => !(leaves as readonly string[]).includes(kind));
    const fixed = await fix(agent, session, { backups });
    if (fixed === null) {
      const { problems } = await diagnose(agent, session);
      return left(problems).map((kind) => `${kind} is not repaired`);
    }
    const complaints = left(fixed.diagnosis.problems).map((kind) => `${kind} is left`);
    const after = bytesBelow(home);
    if ((await fix(agent, session, { backups })) !== null) complaints.push("a second fix changes something");
    if (differenceOf(after, bytesBelow(home)).length > 0) complaints.push("a second fix changes a file");
    using door = new Door();
    undo(backups, listBackups(backups, door).find(({ id }) => id === fixed.backup)!);
    for (const path of differenceOf(damaged, bytesBelow(home)))
      complaints.push(`undo does not bring back ${relative(home, path)}`);
    await fix(agent, session, { backups });
    for (const path of differenceOf(after, bytesBelow(home)))
      if (!/\.(?:sqlite|db)$/.test(path)) complaints.push(`another fix makes another ${relative(home, path)}`);
    return complaints;
  }

  async #read(session: SessionPlace, root: string): Promise<Unit[]> {
    using door = new Door();
    const { conversations } = await readConversations(this.#reader, session, door);
    const blocks = conversations.flatMap(({ messages }) =>
      messages.flatMap(({ role, content }) =>
        (typeof content === "string" ? [{ type: "text", text: content }] : content).map((block) => ({ role, block })),
      ),
    );
    return blocks.map(({ role, block }): Unit => {
      const text = (value: unknown): string =>
        unmoved(typeof value === "string" ? value : (JSON.stringify(value) ?? ""), root);
      if (block.type === "tool_use")
        return { kind: "call", text: text(block["input"]), call: String(block["id"]), name: String(block["name"]) };
      if (block.type === "tool_result")
        return { kind: "result", text: text(block["content"]), call: String(block["tool_use_id"]) };
      return { kind: role, text: text(block.type === "text" ? block["text"] : block) };
    });
  }

  /** What the program itself shows its model; null if it is not asked. Throws if it refuses the session. */
  async #shown({ recording, id }: Sample, place: Place, root: string): Promise<readonly Unit[] | null> {
    if (this.#judge === null || recording.version !== this.#judge.program.version) return null;
    const { loads, says, units } = await this.#judge.lab.judge(this.#judge.program, place, id);
    if (!loads) throw new Error(`the program refuses it: ${says.split("\n").slice(-3).join(" ")}`);
    return units.map((unit) => ({ ...unit, text: unmoved(unit.text, root) }));
  }

  /** The one at this path, or else with this id. */
  #sessionOf({ home }: Place, id: string, path?: string): SessionPlace | undefined {
    using door = new Door();
    const all = [...sessionsHere([this.#reader], { environment: {}, home }, door)].map(({ session }) => session);
    const isHere = (session: SessionPlace): boolean => session.path === path && session.isShared !== true;
    return all.find(isHere) ?? all.find((session) => session.id === id);
  }

  async #placed<T>(
    { recording, id }: Sample,
    use: (place: Place, session: SessionPlace, root: string) => Promise<T>,
  ): Promise<T> {
    // As long as the folder of the recordings, so that offsets of bytes in an index stay true.
    const root = mkdtempSync("/tmp/hf-lab");
    try {
      const place = placeRecording(recording, root);
      const session = this.#sessionOf(place, id);
      if (!session) throw new Error(`the reader does not find ${recording.story} ${id}`);
      return await use(place, session, root);
    } finally {
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    }
  }
}

const keyOf = ({ recording: { version, story }, id }: Sample): string => `${version} ${story} ${id}`;

/** Some programs name a folder after the path of another. */
const dashed = (path: string): string => path.replaceAll(/[^a-zA-Z0-9]/g, "-");
const unmoved = (text: string, root: string): string =>
  text.replaceAll(root, ROOT).replaceAll(dashed(root), dashed(ROOT));

function bytesBelow(home: string): Map<string, Buffer> {
  return new Map(filesBelow(home).map((path) => [path, readFileSync(path)]));
}

function differenceOf(before: ReadonlyMap<string, Buffer>, after: ReadonlyMap<string, Buffer>): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => {
    const [a, b] = [before.get(path), after.get(path)];
    return a === undefined || b === undefined || !a.equals(b);
  });
}
