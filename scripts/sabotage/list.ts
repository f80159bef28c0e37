import { agentSabotages } from "./agent.ts";
import { postgresSabotages } from "./postgres.ts";
import { sessionSabotages } from "./sessions.ts";
import { sqliteSabotages } from "./sqlite.ts";

/** One way to break the store, as a change of its source. Each must be caught by some test. */
export interface Sabotage {
  readonly name: string;
  /** Where the file is; default: the library's sources. */
  readonly room?: string;
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Where to look for the test that notices: layers or files, as vitest takes them. */
  readonly look: readonly string[];
}

const SIMULATION = ["simulation"];
const UNIT = ["unit/folder-"];
const CONFORMANCE = ["conformance/folder"];

export const sabotages: readonly Sabotage[] = [
  {
    name: "order: a clock that is set back turns the order of lists around",
    file: "journal/order.ts",
    find: "if (wallMs + this.#ahead < this.#newestMs) this.#pass(wallMs, this.#newestMs);",
    replace: "",
    look: [...CONFORMANCE, "unit/order"],
  },
  {
    name: "order: a writer does not look how far the other sessions are",
    file: "stores/folder/store.ts",
    find: "    this.#clock.follow(this.#listing.newest());\n",
    replace: "",
    look: [...CONFORMANCE, "unit/list"],
  },
  {
    name: "order: the header of a segment does not say how far it is ahead",
    file: "journal/ledger.ts",
    find: "aheadFirst: ahead !== (options.born ? 0 : this.#ahead),",
    replace: "aheadFirst: false,",
    look: CONFORMANCE,
  },
  {
    name: "list: one session that cannot be read stops the list",
    file: "stores/folder/listing.ts",
    find: "        unreadable.push(unreadableRow(id, row, before + id, error));",
    replace: "        throw error;",
    look: ["unit/one-bad-session"],
  },
  {
    name: "journal: a record may nest as deep as it likes",
    file: "journal/decode.ts",
    find: "if (last - start > LONG_BYTES && nestsDeeper(bytes.subarray(start, last))) return null;",
    replace: "",
    look: ["unit/one-bad-session"],
  },
  {
    name: "journal: a long line is parsed however deep it nests",
    file: "journal/decode.ts",
    find: "if (text.length > 2 * RECORD_LEVELS_MAX && isDeeper(value, RECORD_LEVELS_MAX)) return null;",
    replace: "",
    look: ["unit/one-bad-session"],
  },
  {
    name: "search: a message is indexed to its end, however long it is",
    file: "session/search/texts.ts",
    find: "if (text.length <= TEXT_CHARS_MAX) return text;",
    replace: "if (text.length >= 0) return text;",
    look: ["unit/one-bad-session"],
  },
  {
    name: "resumeLatest: what was finished comes before what was interrupted",
    file: "session/list.ts",
    find: '  yield* free(store, { where: mine, hints: unfinished }, ({ state }) => state !== "idle");\n  yield* free(store, { where: mine, hints }, ({ state }) => state === "idle");\n',
    replace: "  void unfinished;\n  yield* free(store, { where: mine, hints }, () => true);\n",
    look: ["unit/list"],
  },
  {
    name: "no fsync: acknowledge when the bytes are written",
    file: "stores/folder/journal.ts",
    find: "this.#inFlight = this.#writer.sync().then(",
    replace: "this.#inFlight = Promise.resolve().then(",
    look: SIMULATION,
  },
  {
    name: "no folder fsync when a segment is born",
    file: "stores/folder/birth.ts",
    find: "    disk.syncFolder(folder);\n",
    replace: "",
    look: SIMULATION,
  },
  {
    name: "no fsync of a segment before it is renamed",
    file: "stores/folder/birth.ts",
    find: "      file.syncNow();\n",
    replace: "",
    look: SIMULATION,
  },
  {
    name: "the folder of a new session is not synced",
    file: "stores/folder/store.ts",
    find: "        this.#disk.syncFolder(this.#sessions);\n        ledger.commit",
    replace: "        ledger.commit",
    look: SIMULATION,
  },
  {
    name: "buffered write: hand the bytes over later",
    file: "stores/folder/writer.ts",
    find: "written = this.#file!.write(bytes);",
    replace: "const later = Buffer.from(bytes); setImmediate(() => this.#file!.write(later)); written = bytes.length;",
    look: ["kill/campaign", ...SIMULATION],
  },
  {
    name: "no cut-back after a failed write",
    file: "stores/folder/writer.ts",
    find: "        this.#second!.truncate(this.#size);\n        return;",
    replace: "        return;",
    look: SIMULATION,
  },
  {
    name: "no quarantine: torn bytes are cut off and gone",
    file: "stores/folder/heal.ts",
    find: "cut === null ? undefined : keepAside(disk, folder, name, file, cut, size);",
    replace: "cut === null ? undefined : folder;",
    look: UNIT,
  },
  {
    name: "a torn end counts: it is sealed with the rest",
    file: "stores/folder/heal.ts",
    find: "eachChunk(file, durableEnd, cut ?? size, put);",
    replace: "eachChunk(file, durableEnd, size, put);",
    look: UNIT,
  },
  {
    name: "trust after a failed fsync: what the cache shows is not written again",
    file: "stores/folder/heal.ts",
    find: "seal(disk, folder, name, durableEnd, (put) => {\n        eachChunk(file, durableEnd, cut ?? size, put);\n        if (unended) put(NEWLINE);\n      });",
    replace: "seal(disk, folder, name, cut ?? size, (put) => {\n        if (unended) put(NEWLINE);\n      });",
    look: SIMULATION,
  },
  {
    name: "trust in `closed`: a segment is appended to though nobody said that it is durable",
    file: "stores/folder/heal.ts",
    find: "  const claim = claimNext(disk, folder);\n",
    replace:
      "  const found = await readEpoch(disk, folder);\n  if (found && !found.recovery.unclean) return { epoch: found, claim: null };\n  const claim = claimNext(disk, folder);\n",
    look: ["unit/folder-tail", "unit/fence"],
  },
  {
    name: "two writers: the segment of a writer that was killed is written to",
    file: "stores/folder/heal.ts",
    find: "  return epoch && { epoch, claim };",
    replace: "  return epoch && { epoch, claim: epoch.last.tail ? claim : null };",
    look: ["unit/fence", "unit/folder-tail"],
  },
  {
    name: "two writers: the journal is read before the claim",
    file: "stores/folder/heal.ts",
    find: "  const claim = claimNext(disk, folder);\n  const epoch = await readEpoch(disk, folder);\n",
    replace: "  const epoch = await readEpoch(disk, folder);\n  const claim = claimNext(disk, folder);\n",
    look: ["unit/fence"],
  },
  {
    name: "two writers: a writer does not look whether it was replaced",
    file: "stores/folder/writer.ts",
    find: "throw replaced(this.#folder);\n      if (found) this.#lease",
    replace: "void replaced;\n      if (found) this.#lease",
    look: ["unit/fence"],
  },
  {
    name: "two writers: under `process` a writer never looks",
    file: "stores/folder/journal.ts",
    find: "    if (!this.#parts.lease.isSure) {",
    replace: "    if (this.#ended) {",
    look: ["unit/fence"],
  },
  {
    name: "two writers: a new segment takes the place of another one's",
    file: "stores/folder/birth.ts",
    find: "    disk.link(temporary, path);",
    replace: "    disk.rename(temporary, path);",
    look: ["unit/fence"],
  },
  {
    name: "two writers: both go on where the last one closed",
    file: "stores/folder/store.ts",
    find: "      if (!lease.takeClose()) throw replaced(folder);",
    replace: "      lease.takeClose();",
    look: ["unit/fence"],
  },
  {
    name: "two writers: a segment that the newest one does not go on from counts",
    file: "stores/folder/segment.ts",
    find: "    place = link.header && placeBefore(link.header);",
    replace: "    place = null;",
    look: ["unit/fence", "corpus"],
  },
  {
    name: "the hard lock is given away by a close",
    file: "disk/hard-lock.ts",
    find: "  if (isOpen && status === 0 && isNamed(path, fd)) return { release };\n",
    replace: "  if (isOpen && status === 0 && isNamed(path, fd)) {\n    release();\n    return { release };\n  }\n",
    look: ["unit/folder-safety", "unit/lease"],
  },
  {
    name: "a loop of appends keeps the background sync from its turn",
    file: "stores/folder/journal.ts",
    find: "performance.now() - this.#unsyncedSince > BACKGROUND_MS;",
    replace: "performance.now() - this.#unsyncedSince > 1e9;",
    look: UNIT,
  },
  {
    name: "trust after a failed fsync: the journal goes on",
    file: "stores/folder/journal.ts",
    find: "        this.#inFlight = null;\n        this.#fail(error);",
    replace: "        void error;\n        this.#synced(covers);",
    look: SIMULATION,
  },
  {
    name: "a sync acknowledges what was written after it was issued",
    file: "stores/folder/journal.ts",
    find: "() => this.#synced(covers),",
    replace: "() => this.#synced(Math.max(covers, this.#ledger.head)),",
    look: SIMULATION,
  },
  {
    name: "the mark says more than is durable",
    file: "journal/ledger.ts",
    find: "const mark = this.#durable > this.#marked ? this.#durable : undefined;",
    replace: "const mark = this.#head > this.#marked ? this.#head : undefined;",
    look: [...SIMULATION, "unit/ledger"],
  },
  {
    name: "epoch not atomic: the segment is born with its header alone",
    file: "stores/folder/writer.ts",
    find: "(put) => put(prepared.bytes)",
    replace: '(put) => put(prepared.bytes.subarray(0, prepared.bytes.indexOf("\\n") + 1))',
    look: [...CONFORMANCE, ...SIMULATION],
  },
  {
    name: "epoch in place: written to the new segment after it is renamed",
    file: "stores/folder/writer.ts",
    find: "    this.#ledger.commit(prepared);\n    this.#ledger.setDurable(prepared.last);\n    if (records)",
    replace:
      '    const path = join(this.#folder, segmentName(number));\n    const again = this.#disk.open(path, "update");\n    again.truncate(prepared.bytes.indexOf(10) + 1);\n    again.close();\n    const more = this.#disk.open(path, "append");\n    more.write(prepared.bytes.subarray(prepared.bytes.indexOf(10) + 1));\n    more.syncNow();\n    more.close();\n    this.#ledger.commit(prepared);\n    this.#ledger.setDurable(prepared.last);\n    if (records)',
    look: SIMULATION,
  },
  {
    name: "the lease file is read by its holder",
    file: "stores/lease.ts",
    find: "      this.#announce(id, holder);\n",
    replace: '      this.#announce(id, holder);\n      this.#disk.open(path, "read").close();\n',
    look: ["unit/folder-safety", "kill/processes"],
  },
  {
    name: "the lease does not exclude",
    file: "disk/node-disk.ts",
    find: "BEGIN EXCLUSIVE",
    replace: "BEGIN",
    look: ["unit/folder-safety", "kill/processes"],
  },
  {
    name: "the lease outlives its holder (a file instead of a lock)",
    file: "disk/node-disk.ts",
    find: "function lock(path: string): DiskLock | null {\n",
    replace:
      'function lock(path: string): DiskLock | null {\n  const taken = path + ".taken";\n  if (fs.existsSync(taken)) return null;\n  fs.writeFileSync(taken, "");\n  if (taken) return { release: () => fs.rmSync(taken) };\n',
    look: ["kill/processes", "conformance/folder"],
  },
  {
    name: "another file in the journal's place goes unseen",
    file: "stores/folder/writer.ts",
    find: "    if (found && found.dev === dev && found.ino === ino && found.size === this.#size) return;",
    replace: "    if (!Number.isNaN(found?.size ?? dev + ino)) return;",
    look: UNIT,
  },
  {
    name: "checksums are not compared",
    file: "journal/decode.ts",
    find: "covered - start)) !== crc) return null;",
    replace: "covered - start)) !== crc && bytes.length === 0) return null;",
    look: UNIT,
  },
  {
    name: "a unit is several records",
    file: "journal/encode.ts",
    find: "if (records.length > 1 && envelope.unit !== false) marks =",
    replace: "if (records.length > 1e9) marks =",
    look: SIMULATION,
  },
  {
    name: "keys are forgotten when a session is opened",
    file: "journal/ledger.ts",
    find: "if (record.key !== undefined)",
    replace: "if (record.key === null)",
    look: CONFORMANCE,
  },
  {
    name: "keys are forgotten over an epoch",
    file: "stores/folder/writer.ts",
    find: "      ...(records ? { keys: this.#ledger.keysToCarry() } : {}),\n",
    replace: "",
    look: CONFORMANCE,
  },
  {
    name: "`closed` before the sync that it speaks of",
    file: "stores/folder/journal.ts",
    find: "    await this.#durableAt(this.#ledger.head, undefined);\n    try {\n      this.#writer.put",
    replace: "    this.#ledger.setDurable(this.#ledger.head);\n    try {\n      this.#writer.put",
    look: SIMULATION,
  },
  {
    name: "no sync in the background",
    file: "stores/folder/journal.ts",
    find: "    this.#timer = setTimeout(() => {",
    replace: "    this.#timer = setTimeout(() => {\n      if (this.#timer) return;",
    look: UNIT,
  },
  {
    name: "followers see what is not acknowledged",
    file: "stores/folder/follow.ts",
    find: "const limit = live?.acknowledged ?? Number.POSITIVE_INFINITY;",
    replace: "const limit = Number.POSITIVE_INFINITY;",
    look: [...CONFORMANCE, ...UNIT],
  },
  {
    name: "followers see half a unit",
    file: "stores/folder/follow.ts",
    find: "let count = tail.keep;",
    replace: "let count = scan.records.length;",
    look: [...UNIT, ...CONFORMANCE],
  },
  {
    name: "readers heal",
    file: "stores/folder/store.ts",
    find: "    const { records, recovery } = epoch;\n",
    replace: "    const { records, recovery } = epoch;\n    heal(this.#disk, folder, epoch);\n",
    look: UNIT,
  },
  {
    name: "the list trusts its catalogue",
    file: "stores/folder/summary.ts",
    find: "  if (!found || found.size !== row.size || found.mtimeMs !== row.mtimeMs) return false;",
    replace: "  if (!found) return false;",
    look: UNIT,
  },
  {
    name: "files that everybody can read",
    file: "disk/node-disk.ts",
    find: "FLAGS[mode], 0o600)",
    replace: "FLAGS[mode], 0o644)",
    look: UNIT,
  },
  {
    name: "links are followed",
    file: "disk/node-disk.ts",
    find: "const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;",
    replace: "const O_NOFOLLOW = 0;",
    look: UNIT,
  },
  {
    name: "any id becomes a path",
    file: "journal/id.ts",
    find: 'return typeof id === "string" && UUID.test(id);',
    replace: 'return typeof id === "string" && UUID.source !== "";',
    look: UNIT,
  },
  {
    name: "packed frames without a checksum",
    file: "stores/folder/pack.ts",
    find: "[constants.ZSTD_c_checksumFlag]: 1",
    replace: "[constants.ZSTD_c_checksumFlag]: 0",
    look: UNIT,
  },
  {
    name: "a newer major format is written to",
    file: "journal/lifecycle.ts",
    find: "if (Number(match[1]) > FORMAT_MAJOR) {",
    replace: "if (Number(match[1]) > FORMAT_MAJOR + 9) {",
    look: UNIT,
  },
  {
    name: "delete without the lease",
    file: "stores/folder/store.ts",
    find: "    await this.#underLease(id, () => {\n      if (this.#segmentsOf(folder)",
    replace: "    await (async (_: string, run: () => void) => run())(id, () => {\n      if (this.#segmentsOf(folder)",
    look: UNIT,
  },
  ...sessionSabotages,
  ...sqliteSabotages,
  ...agentSabotages,
  ...postgresSabotages,
];
