import { statSync } from 'node:fs';
import { join } from 'node:path';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { createAgent } from 'langchain';
import { z } from 'zod';
import { INSTRUCTIONS } from '../workload.mjs';

const usage_metadata = { input_tokens: 100, output_tokens: 80, total_tokens: 180 };

export async function open({ name, folder, postgres, workload, turns }) {
  class ScriptedModel extends BaseChatModel {
    _llmType() {
      return 'scripted';
    }
    bindTools() {
      return this;
    }
    async _generate(messages) {
      const prompt = JSON.stringify(messages.map((one) => ({ role: one.getType(), content: one.content, tool_calls: one.tool_calls })));
      const { text, call } = await workload.model(prompt, messages.at(-1).getType() === 'tool');
      const message = new AIMessage({
        content: text ?? '',
        ...(call && { tool_calls: [{ id: call.id, name: call.name, args: call.input, type: 'tool_call' }] }),
        usage_metadata,
      });
      return { generations: [{ text: message.content, message }] };
    }
  }
  const lookup = tool((input) => workload.tool(input), {
    name: 'lookup',
    description: 'look up an item',
    schema: z.object({ q: z.string() }),
  });
  const { checkpointer, storedBytes } = await (name === 'langgraph-sqlite' ? openSqlite(folder) : openPostgres(postgres));
  const agent = createAgent({ model: new ScriptedModel({}), tools: [lookup], checkpointer, systemPrompt: INSTRUCTIONS });
  const options = (id) => ({ configurable: { thread_id: id }, durability: 'sync', recursionLimit: 25 + turns });
  const textOf = ({ messages }) => messages.at(-1).content;
  return {
    turn: async (id, text) => textOf(await agent.invoke({ messages: [{ role: 'user', content: text }] }, options(id))),
    async resume(id, text) {
      const { next, values } = await agent.getState(options(id));
      // The message may not have reached the first checkpoint.
      const has = (values.messages ?? []).some(({ content }) => content === text);
      return textOf(await agent.invoke(next.length > 0 && has ? null : { messages: [{ role: 'user', content: text }] }, options(id)));
    },
    storedBytes,
    close: async () => {},
  };
}

async function openSqlite(folder) {
  const { SqliteSaver } = await import('@langchain/langgraph-checkpoint-sqlite');
  const file = join(folder, 'checkpoints.db');
  const checkpointer = SqliteSaver.fromConnString(file);
  const storedBytes = async () => {
    checkpointer.db.pragma('wal_checkpoint(TRUNCATE)');
    return statSync(file).size;
  };
  return { checkpointer, storedBytes };
}

async function openPostgres(url) {
  const { PostgresSaver } = await import('@langchain/langgraph-checkpoint-postgres');
  const checkpointer = PostgresSaver.fromConnString(url);
  await checkpointer.setup();
  const storedBytes = async () => {
    const { rows } = await checkpointer.pool.query('select pg_database_size(current_database()) as bytes');
    return Number(rows[0].bytes);
  };
  return { checkpointer, storedBytes };
}
