/**
 * Who takes part. `module`: the file beside this one. `node`: the major version that its packages ask for. `needs`: servers that the run starts for it. `durable`: what its own
 * documentation recommends for conversations that must survive. `after`: what a program has to do when the process has died in a turn.
 */
export const PEERS = {
  perdura: {
    module: 'perdura',
    title: 'Perdura',
    packages: [],
    node: 20,
    needs: ['temporal'],
    durable: 'as it comes: files for memory, Temporal for the conversation',
    after: 'nothing; or `send` with the same id for the answer',
  },
  temporal: {
    module: 'temporal',
    title: 'Temporal, bare',
    packages: ['@temporalio/worker'],
    node: 20,
    needs: ['temporal'],
    durable: 'one workflow, the messages in its state, an activity for each call, continued as new when Temporal suggests it',
    after: 'nothing; or ask for the update’s result',
  },
  'temporal-ai-sdk': {
    module: 'temporal',
    title: '@temporalio/ai-sdk',
    packages: ['@temporalio/ai-sdk', 'ai'],
    node: 22,
    needs: ['temporal'],
    durable: '`generateText` in a workflow, the tool an activity; a model call may take 10 minutes, its default',
    after: 'nothing; or ask for the update’s result',
  },
  'temporal-openai-agents': {
    module: 'temporal',
    title: '@temporalio/openai-agents',
    packages: ['@temporalio/openai-agents', '@openai/agents-core'],
    node: 22,
    needs: ['temporal'],
    durable: '`TemporalOpenAIRunner` with a `WorkflowSafeMemorySession`, the tool an activity',
    after: 'nothing; or ask for the update’s result',
  },
  'langgraph-sqlite': {
    module: 'langgraph',
    title: 'LangGraph JS, SQLite',
    packages: ['langchain', '@langchain/langgraph', '@langchain/langgraph-checkpoint-sqlite'],
    node: 20,
    needs: [],
    durable: '`createAgent` with `SqliteSaver`, `durability: "sync"`',
    after: 'find the thread and `invoke(null)`',
  },
  'langgraph-postgres': {
    module: 'langgraph',
    title: 'LangGraph JS, Postgres',
    packages: ['langchain', '@langchain/langgraph', '@langchain/langgraph-checkpoint-postgres'],
    node: 20,
    needs: ['postgres'],
    durable: '`createAgent` with `PostgresSaver`, `durability: "sync"`',
    after: 'find the thread and `invoke(null)`',
  },
  mastra: {
    module: 'mastra',
    title: 'Mastra, LibSQL',
    packages: ['@mastra/core', '@mastra/memory', '@mastra/libsql'],
    node: 22,
    needs: [],
    durable: '`Agent` with `Memory` on `LibSQLStore`, the whole conversation in the prompt (`lastMessages`)',
    after: 'say the message again',
  },
};
