/** Clients of npm, newest versions. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { installPackages, named } from './npm-packages.js';
import { outcomesIn } from './python.js';
import type { Suite } from './suite.js';

const OPENAI = 'openai@7.59.0';
const ANTHROPIC = '@anthropic-ai/sdk@1.14.0';
const ZOD = 'zod@4.6.7';
const PROGRAMS = join(__dirname, 'js');

export const JS_SUITES: readonly Suite[] = [
  suite('OpenAI in JavaScript', OPENAI, 'openai.mjs', [ZOD]),
  suite('Anthropic in JavaScript', ANTHROPIC, 'anthropic.mjs', [ZOD]),
  suite('OpenAI Agents in JavaScript', '@openai/agents@0.20.0', 'openai-agents.mjs', [OPENAI, ZOD]),
  suite('LangChain in JavaScript', 'langchain@1.5.14', 'langchain.mjs', [
    ...['@langchain/core@1.4.0', '@langchain/openai@1.6.0', '@langchain/anthropic@1.5.11', ZOD],
  ]),
  suite('AI SDK 7', 'ai@7.0.173', 'ai-sdk.mjs', [
    ...['@ai-sdk/openai@4.0.118', '@ai-sdk/anthropic@4.0.105', '@ai-sdk/openai-compatible@3.0.92', ZOD],
  ]),
  suite('AI SDK 6', 'ai@6.0.326', 'ai-sdk.mjs', [
    ...['@ai-sdk/openai@3.0.141', '@ai-sdk/anthropic@3.0.140', '@ai-sdk/openai-compatible@2.0.92', ZOD],
  ]),
];

function suite(name: string, pin: string, file: string, beside: readonly string[]): Suite {
  return {
    name,
    client: `${named(pin)} (npm)`,
    async run({ cacheDir, url, token }) {
      const packages = await installPackages(cacheDir, [pin, ...beside]);
      // A module finds packages beside itself.
      await cp(PROGRAMS, join(packages.dir, 'js'), { recursive: true });
      return outcomesIn(await packages.run({ file: join(packages.dir, 'js', file) }, [], { PERDURA_URL: url, PERDURA_TOKEN: token }));
    },
  };
}
