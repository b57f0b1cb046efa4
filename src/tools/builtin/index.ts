/** The tools that every agent has unless its `agent.json` says otherwise. */
import { z } from 'zod';
import type { KnownSecrets } from '../../platform/known-secrets.js';
import { defineTool } from '../define-tool.js';
import type { Tool } from '../tool.js';
import { askUser, waitUntil, delegate, setTask, compactContext } from './conversation-tools.js';
import { createEditFile, editFile } from './files/edit-file.js';
import { createFetchUrl, fetchUrl } from './web/fetch-url.js';
import { listFiles } from './files/list-files.js';
import { readFile } from './files/read-file.js';
import { createRunCommand, runCommand } from './command/run-command.js';
import { searchFiles } from './files/search-files.js';
import { openMemory, searchHistory, searchMemory, readEpisode, storeInMemory, retrieveFromMemory, queryMemory } from './memory-tools.js';
import { createWriteFile, writeFile } from './files/write-file.js';

export const getTime = defineTool({
  name: 'get_time',
  description: 'Tells the current date and time in ISO 8601: in UTC, or in the time zone given, with its offset.',
  input: z.object({
    timeZone: z.string().min(1).max(100).optional().describe('IANA name, such as "Europe/Berlin". Default: UTC.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: ({ timeZone }, { now }) => (timeZone === undefined ? now().toISOString() : inZone(now(), timeZone)),
});

/** `2026-11-21T15:45:00+01:00` */
function inZone(time: Date, timeZone: string): string {
  const parts = new Map(
    zoneFormat(timeZone)
      .formatToParts(time)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  // `GMT+01:00`, and plain `GMT` where the offset is nothing.
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00';
  return `${part('year')}-${part('month')}-${part('day')}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    });
  } catch (cause) {
    throw new Error(`there is no time zone ${JSON.stringify(timeZone)}; use an IANA name such as "Europe/Berlin" or "UTC"`, { cause });
  }
}

export const builtinTools: Tool[] = [
  askUser,
  compactContext,
  delegate,
  editFile,
  fetchUrl,
  getTime,
  listFiles,
  openMemory,
  queryMemory,
  readEpisode,
  readFile,
  retrieveFromMemory,
  runCommand,
  searchFiles,
  searchHistory,
  searchMemory,
  setTask,
  storeInMemory,
  waitUntil,
  writeFile,
];

export interface BuiltinSettings {
  /** `host:port` that may be fetched from although it is not public. */
  readonly fetchAllow: readonly string[];
  readonly commandEnvironment: Readonly<Record<string, string>>;
  /** Absolute paths of settings and memory, which file tools do not write. */
  readonly protectedPlaces: readonly string[];
  /** Those of them that commands do not read either: keys, and what others remember. */
  readonly hiddenPlaces: readonly string[];
  readonly secrets?: KnownSecrets;
}

/** The tools of `builtinTools`, those with settings as the worker sets them. */
export function builtinToolsWith({ fetchAllow, commandEnvironment, protectedPlaces, hiddenPlaces, secrets }: BuiltinSettings): Tool[] {
  const configured = [
    createEditFile({ protectedPlaces }),
    createFetchUrl({ allow: fetchAllow, ...(secrets && { secrets }) }),
    createRunCommand({ environment: commandEnvironment, protectedPlaces, hiddenPlaces, allow: fetchAllow }),
    createWriteFile({ protectedPlaces }),
  ];
  return builtinTools.map((tool) => configured.find(({ name }) => name === tool.name) ?? tool);
}
