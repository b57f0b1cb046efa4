import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readModule } from '../architecture/read-module.js';

const root = join(__dirname, '../../src/models');
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));

test.each(['openai', '@google/genai', 'ollama', 'gpt-tokenizer'])('%s is loaded by the first call, not by the start of a worker', (sdk) => {
  const uses = sources.flatMap((path) => {
    const { imports } = readModule(path, readFileSync(join(root, path), 'utf8'));
    return imports.filter(({ specifier }) => specifier === sdk || specifier.startsWith(`${sdk}/`));
  });
  expect([...new Set(uses.map(({ kind }) => kind))].filter((kind) => kind !== 'type')).toEqual(['lazy']);
});
