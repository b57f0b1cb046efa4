/**
 * `node scripts/model-table.mjs`: whether data/models.txt is what this script made; a part of `npm run check`. `--write` makes it
 * from the public table of LiteLLM, which its Python package ships: `pip` fetches the release that is named here, and nothing else of it is
 * used. `--write FILE` takes the table from a file that is there already.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report, run } from './report.mjs';

const RELEASE = '1.108.7';
const DAY = '12 November 2026';
const SHA256 = '1b36058661d161d27d09c4193ae9bf226a2f9d83dd28d21e0180ca94518f4370';
const FILE_IN_WHEEL = 'litellm/model_prices_and_context_window_backup.json';

const FILE = join(dirname(dirname(fileURLToPath(import.meta.url))), 'data', 'models.txt');

/** Our name of a provider, and LiteLLM's: of two rows with one name the first counts. */
const PROVIDERS = {
  anthropic: ['anthropic'],
  openai: ['openai'],
  gemini: ['gemini'],
  azure: ['azure', 'azure_ai'],
  bedrock: ['bedrock_converse', 'bedrock'],
  vertex: [
    'vertex_ai',
    'vertex_ai-language-models',
    'vertex_ai-anthropic_models',
    'vertex_ai-mistral_models',
    'vertex_ai-llama_models',
    'vertex_ai-openai_models',
    'vertex_ai-deepseek_models',
    'vertex_ai-qwen_models',
  ],
  mistral: ['mistral'],
  xai: ['xai'],
  groq: ['groq'],
  cohere: ['cohere_chat'],
  deepseek: ['deepseek'],
  togetherai: ['together_ai'],
  fireworks: ['fireworks_ai'],
  deepinfra: ['deepinfra'],
  cerebras: ['cerebras'],
  moonshotai: ['moonshot'],
  alibaba: ['dashscope'],
  zai: ['zai'],
  minimax: ['minimax'],
  gateway: ['vercel_ai_gateway'],
};

/** What stands before a model's name there. */
const PREFIX = new RegExp(
  `^(${[...new Set(Object.values(PROVIDERS).flat())].filter((id) => !id.includes('-')).join('|')}|cohere|vertex_ai|together_ai)/`,
);

await run(() => {
  if (!process.argv.includes('--write')) return check();
  const given = process.argv[process.argv.indexOf('--write') + 1];
  const source = given === undefined ? fetchTable() : readFileSync(given);
  if (sha256(source) !== SHA256) throw new Error(`${given ?? FILE_IN_WHEEL} is not that of LiteLLM ${RELEASE}: SHA256 goes with RELEASE.`);
  writeFileSync(FILE, render(JSON.parse(source.toString('utf8'))));
  report('Models', `data/models.txt, from LiteLLM ${RELEASE}`);
  return 0;
});

/** The file names its release and the digest of its rows, so a row that was changed by hand is found without the package. */
function check() {
  const text = readFileSync(FILE, 'utf8');
  const rows = text.replace(/^(#.*\n)+/, '');
  if (text === withHead(rows)) return 0;
  process.stderr.write('data/models.txt is not what scripts/model-table.mjs has made.\n');
  return 1;
}

function fetchTable() {
  const folder = mkdtempSync(join(tmpdir(), 'model-table-'));
  try {
    const python = (...rest) => execFileSync('python3', ['-m', ...rest], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    python('pip', 'download', '--quiet', '--no-deps', '--dest', '.', `litellm==${RELEASE}`);
    const [wheel] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
    python('zipfile', '--extract', wheel, 'wheel');
    return readFileSync(join(folder, 'wheel', FILE_IN_WHEEL));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The whole file, of LiteLLM's table. */
function render(table) {
  const sections = Object.entries(PROVIDERS).map(([provider, ids]) => `[${provider}]\n${renderSection(provider, ids, table)}`);
  return withHead(sections.join(''));
}

function renderSection(provider, ids, table) {
  const rows = new Map();
  for (const id of ids) {
    for (const [key, entry] of Object.entries(table)) {
      const name = key.replace(PREFIX, '');
      if (entry.litellm_provider !== id || !['chat', 'responses'].includes(entry.mode) || !isName(provider, name) || rows.has(name))
        continue;
      const row = renderRow(entry);
      if (row !== undefined) rows.set(name, row);
    }
  }
  // A dated name finds the undated one by itself.
  const isSame = ([name, row]) => {
    const short = name.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$|@.*$/, '');
    return short !== name && rows.get(short) === row;
  };
  const kept = [...rows].filter((row) => !isSame(row)).sort(([one], [other]) => (one < other ? -1 : 1));
  return kept.map(([name, row]) => `${name} ${row}\n`).join('');
}

/** Rows for one region of a cloud, or of a customer's own fine-tuning, have names that nobody asks a model by. */
function isName(provider, name) {
  if (/\s|`|\*|^ft:/.test(name)) return false;
  return !(['azure', 'bedrock', 'openai', 'anthropic', 'gemini'].includes(provider) && name.includes('/'));
}

/** `window answer flags`, then prices if they are known: `input cached write output`, and those of a long prompt after its size. */
function renderRow(entry) {
  const window = entry.max_input_tokens ?? entry.max_tokens;
  const prices = readPrices(entry);
  if (typeof window !== 'number' && prices === undefined) return undefined;
  const hasSchema = entry.supports_response_schema === true || entry.supports_native_structured_output === true;
  const flags = `${entry.supports_pdf_input === true ? 'd' : ''}${hasSchema ? 's' : ''}` || '-';
  return [count(window), count(entry.max_output_tokens), flags, ...(prices ?? [])].join(' ');
}

function count(value) {
  return typeof value === 'number' && value > 0 ? value : '-';
}

/**
 * Undefined where they are not known, or are no single price a token: zeros (a plan, or nobody knows), thoughts at another price than words,
 * three steps and more, none of which a sum of tokens shows.
 */
function readPrices(entry) {
  const usual = readRate(entry, '');
  if (usual === undefined || (entry.output_cost_per_reasoning_token ?? entry.output_cost_per_token) !== entry.output_cost_per_token)
    return undefined;
  if (entry.tiered_pricing !== undefined) return undefined;
  const steps = Object.keys(entry).flatMap((field) => /^input_cost_per_token_above_(\d+)k_tokens$/.exec(field)?.[1] ?? []);
  if (steps.length === 0) return usual;
  const long = steps.length === 1 ? readRate(entry, `_above_${steps[0]}k_tokens`, usual) : undefined;
  return long && [...usual, Number(steps[0]) * 1_000, ...long];
}

/** US dollars per million tokens. What a cache costs is the price of input where the table has none. */
function readRate(entry, suffix, usual) {
  const [input, output] = [entry[`input_cost_per_token${suffix}`], entry[`output_cost_per_token${suffix}`]];
  if (!(input > 0 && output > 0)) return undefined;
  const ratio = usual && millions(input) / usual[0];
  const cached = entry[`cache_read_input_token_cost${suffix}`] ?? (usual ? (usual[1] * ratio) / 1e6 : input);
  const written = entry[`cache_creation_input_token_cost${suffix}`] ?? (usual ? (usual[2] * ratio) / 1e6 : input);
  return [input, cached, written, output].map(millions);
}

function millions(perToken) {
  return Number((perToken * 1e6).toPrecision(8));
}

function withHead(rows) {
  return `# Windows and prices of models, of ${DAY}: made by scripts/model-table.mjs from the table in LiteLLM ${RELEASE} (PyPI; MIT License,
# Copyright (c) 2023 Berri AI), not by hand. Digest of the rows: ${sha256(rows).slice(0, 32)}
# By provider: name window answer flags, then dollars per million tokens: input cached write output, over and the same above it.
${rows}`;
}

function sha256(data) {
  return createHash('sha256').update(data).digest('hex');
}
