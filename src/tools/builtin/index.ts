/** The tools that every agent has unless its `agent.json` says otherwise. */
import type { KnownSecrets } from '../../platform/known-secrets.js';
import type { Tool } from '../tool.js';
import { askUser, waitUntil, delegate, setTask, compactContext } from './conversation-tools.js';
import { createEditFile, editFile } from './files/edit-file.js';
import { createFetchUrl, fetchUrl } from './web/fetch-url.js';
import { getTime } from './get-time.js';
import { listFiles } from './files/list-files.js';
import { readFile } from './files/read-file.js';
import { createRunCommand, runCommand } from './command/run-command.js';
import { searchFiles } from './files/search-files.js';
import { openMemory, searchHistory, searchMemory, readEpisode, storeInMemory, retrieveFromMemory, queryMemory } from './memory-tools.js';
import { createWriteFile, writeFile } from './files/write-file.js';

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
  readonly secrets?: KnownSecrets;
}

/** The tools of `builtinTools`, those with settings as the worker sets them. */
export function builtinToolsWith({ fetchAllow, commandEnvironment, protectedPlaces, secrets }: BuiltinSettings): Tool[] {
  const configured = [
    createEditFile({ protectedPlaces }),
    createFetchUrl({ allow: fetchAllow, ...(secrets && { secrets }) }),
    createRunCommand({ environment: commandEnvironment }),
    createWriteFile({ protectedPlaces }),
  ];
  return builtinTools.map((tool) => configured.find(({ name }) => name === tool.name) ?? tool);
}
