/** The tools that every agent has unless its `agent.json` says otherwise. */
import type { Tool } from '../tool.js';
import { askUser } from './ask-user.js';
import { compactContext } from './compact-context.js';
import { delegate } from './delegate.js';
import { getTime } from './get-time.js';
import { listFiles } from './list-files.js';
import { readFile } from './read-file.js';
import { searchFiles } from './search-files.js';
import { searchHistory } from './search-history.js';
import { setTask } from './set-task.js';
import { waitUntil } from './wait-until.js';

export const builtinTools: Tool[] = [
  askUser,
  compactContext,
  delegate,
  getTime,
  listFiles,
  readFile,
  searchFiles,
  searchHistory,
  setTask,
  waitUntil,
];
