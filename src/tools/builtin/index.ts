/** The tools that every agent has unless its `agent.json` says otherwise. */
import type { Tool } from '../tool.js';
import { editFile } from './edit-file.js';
import { getTime } from './get-time.js';
import { listFiles } from './list-files.js';
import { readFile } from './read-file.js';
import { searchFiles } from './search-files.js';
import { searchHistory } from './search-history.js';
import { setTask } from './set-task.js';
import { writeFile } from './write-file.js';

export const builtinTools: Tool[] = [editFile, getTime, listFiles, readFile, searchFiles, searchHistory, setTask, writeFile];
