import { appendFile } from 'node:fs/promises';

/** Makes memory of older turns: here without asking a model. */
const ledgerCompactor = {
  name: 'LedgerCompactor',
  async compact({ turns, goal }) {
    return {
      summary: `Goal: ${goal || 'none'}\n${turns.map(({ turnId, text }) => `${turnId}: ${text.slice(0, 200)}`).join('\n')}`.slice(0, 6_000),
      facts: [`${turns.length} turns were put into the ledger.`],
    };
  },
};

export default {
  workflows: './workflows.ts',
  compactors: [ledgerCompactor],
  observers: [
    async (_event, { conversation, notifications }) => {
      for (const told of notifications) await appendFile('notifications.jsonl', `${JSON.stringify({ conversation, ...told })}\n`);
    },
  ],
};
