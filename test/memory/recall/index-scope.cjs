/** Indexes a scope again and again, writing it down each time, until it is killed. */
const { createFileStore } = require('../../../dist/stores/file/index.js');
const { createRecall } = require('../../../dist/memory/recall/recall.js');

const [, , dir, scope] = process.argv;

(async () => {
  const store = createFileStore({ dir });
  process.send('begins');
  for (;;) {
    await store.scopes.removeIndex({ namespace: 'default', scope }, ['head']);
    await createRecall({ store }).search({ namespace: 'default', scope }, { question: 'log', now: new Date() });
  }
})();
