/** How results of the built-in tools are cited, and rows of whatever database, and anything else. */
import type { JsonValue } from '../../records/message.js';
import { truncate, cleanText } from '../../records/text.js';
import type { ActionResult, CompactionContext, CompactionPlugin, CompactionPlugins } from './compaction-plugin.js';
import { isRecord } from '../../platform/json.js';

/** Seed 003: `substring(0, 500) + '...'`. */
const EXCERPT_CHARACTERS = 500;
const HEAD_CHARACTERS = 300;
const TAIL_CHARACTERS = 150;
const LINE_CHARACTERS = 100;
const WORD_CHARACTERS = 120;

/** Pages, as JSON with `url`, `metadata.title` and `content`, or as their text. */
export const webPage: CompactionPlugin = {
  compact({ message }, { input }, context) {
    const page = asObject(parseJson(message));
    const content = textIn(page, 'content') ?? message;
    const title = textIn(asObject(page?.['metadata']), 'title') ?? textIn(page, 'title') ?? findHeading(content);
    return {
      actionName: 'Web Page Content',
      url: word(textIn(page, 'url') ?? textIn(asObject(input), 'url') ?? ''),
      ...(title === undefined ? {} : { title: word(title) }),
      excerpt: `${truncate(shown(content), EXCERPT_CHARACTERS)}...`,
      contentLength: content.length,
      ...reference(context),
    };
  },
};

/** Its last lines say how it ended. */
export const commandOutput: CompactionPlugin = {
  compact({ message, outcome }, { name, input }, context) {
    const command = asObject(input)?.['command'];
    return {
      actionName: name,
      command: word(typeof command === 'string' ? command : JSON.stringify(command ?? input)),
      outcome,
      head: truncate(shown(message), TAIL_CHARACTERS),
      tail: lastPart(shown(message), HEAD_CHARACTERS),
      lines: countLines(message),
      ...reference(context),
    };
  },
};

export const fileContent: CompactionPlugin = {
  compact({ message }, { name, input }, context) {
    return {
      actionName: name,
      path: word(textIn(asObject(input), 'path') ?? ''),
      head: truncate(shown(message), HEAD_CHARACTERS),
      lines: countLines(message),
      contentLength: message.length,
      ...reference(context),
    };
  },
};

export const searchResults: CompactionPlugin = {
  compact({ message }, { name, input }, context) {
    const fields = asObject(input);
    return {
      actionName: name,
      query: word(
        textIn(fields, 'query') ??
          textIn(fields, 'question') ??
          textIn(fields, 'text') ??
          textIn(fields, 'pattern') ??
          JSON.stringify(input),
      ),
      first: message.split('\n', 4).map((line) => truncate(shown(line), LINE_CHARACTERS)),
      lines: countLines(message),
      ...reference(context),
    };
  },
};

export const databaseRows: CompactionPlugin = {
  compact({ message }, { name }, context) {
    const rows = rowsIn(message) ?? [];
    const columns = Object.keys(asObject(rows[0]) ?? {}).slice(0, 12);
    return {
      actionName: name,
      rows: rows.length,
      columns: columns.map((column) => truncate(shown(column), 30)),
      firstRow: truncate(shown(JSON.stringify(rows[0] ?? null)), HEAD_CHARACTERS),
      ...reference(context),
    };
  },
};

export const headAndTail: CompactionPlugin = {
  compact({ message }, { name }, context) {
    return {
      actionName: truncate(shown(name), 64),
      head: truncate(shown(message), HEAD_CHARACTERS),
      tail: lastPart(shown(message), TAIL_CHARACTERS),
      contentLength: message.length,
      ...reference(context),
    };
  },
};

export const BUILTIN_PLUGINS: CompactionPlugins = {
  fetch_url: webPage,
  run_command: commandOutput,
  read_file: fileContent,
  list_files: fileContent,
  search_files: searchResults,
  search_history: searchResults,
  search_memory: searchResults,
};

/** Rows are known by their shape, whichever tool answers with them. */
export function rowsPlugin({ message }: ActionResult): CompactionPlugin | undefined {
  return rowsIn(message) === undefined ? undefined : databaseRows;
}

function rowsIn(message: string): readonly JsonValue[] | undefined {
  const value = parseJson(message);
  const rows = Array.isArray(value) ? (value as readonly JsonValue[]) : asObject(value)?.['rows'];
  if (!Array.isArray(rows) || rows.length < 2) return undefined;
  return (rows as readonly JsonValue[]).every((row) => asObject(row) !== undefined) ? (rows as readonly JsonValue[]) : undefined;
}

function reference({ memoryId }: CompactionContext): { readonly memoryId: string; readonly retrieveWith: string } {
  return { memoryId, retrieveWith: `Retrieve from Memory with id="${memoryId}"` };
}

function parseJson(text: string): JsonValue | undefined {
  // Most results are prose.
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function asObject(value: JsonValue | undefined): { readonly [key: string]: JsonValue } | undefined {
  return isRecord(value) ? (value as { readonly [key: string]: JsonValue }) : undefined;
}

function textIn(object: { readonly [key: string]: JsonValue } | undefined, name: string): string | undefined {
  const value = object?.[name];
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function findHeading(markdown: string): string | undefined {
  return /^#{1,4} +(\S[^\n]{0,200})/m.exec(markdown.slice(0, 4_000))?.[1];
}

function word(text: string): string {
  return truncate(shown(text.slice(0, 2_000)).replace(/\s+/g, ' ').trim(), WORD_CHARACTERS);
}

/** Control characters and hidden text have no business in a citation. Long texts are cut before they are cleaned. */
function shown(text: string): string {
  return text.length <= 4_000 ? cleanText(text) : `${cleanText(text.slice(0, 2_000))}${cleanText(text.slice(-2_000))}`;
}

function lastPart(text: string, characters: number): string {
  return text.slice(-characters).toWellFormed();
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
