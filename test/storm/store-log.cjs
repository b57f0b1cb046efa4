/**
 * Loaded before a worker (`--require`): what it asks of the effect ledger, and what it is told, as lines of the file STORE_LOG: one at the
 * call, one at the return. A worker that is killed leaves the call alone. The clock is that of the machine's uptime, one for all processes.
 */
const { createHash, randomUUID } = require('node:crypto');
const { openSync, writeSync } = require('node:fs');
const { join } = require('node:path');
const product = join(process.env.PERDURA_TEST_PRODUCT, 'dist');
const opening = require.resolve(join(product, 'stores', 'open.js'));
const { openStore, ...others } = require(opening);

const file = openSync(process.env.STORE_LOG, 'a');
const now = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const write = (line) => writeSync(file, `${JSON.stringify(line)}\n`);
const digest = (value) =>
  value === undefined
    ? undefined
    : createHash('sha256')
        .update(JSON.stringify(value) ?? '')
        .digest('hex')
        .slice(0, 16);

/** `ops` of a call; `ends` of its result, in the same order. */
async function logged(key, ops, work, ends) {
  if (ops.length === 0) return work();
  const call = randomUUID();
  const effects = ops.map(({ id, ...op }) => ({ ...op, effect: `${key.namespace} ${key.conversation} ${key.life} ${id}` }));
  write({ call, at: now(), ops: effects });
  const result = await work();
  write({ call, at: now(), ends: ends(result).map(({ status, result: value }) => ({ status, value: digest(value) })) });
  return result;
}

require.cache[opening].exports = {
  ...others,
  openStore(...args) {
    const store = openStore(...args);
    const { effects, writes } = store;
    const fences = (ids = []) => ids.map((id) => ({ kind: 'fence', id }));
    return {
      ...store,
      effects: {
        ...effects,
        reserve: (key, claim, attempt) =>
          logged(
            key,
            [{ kind: 'reserve', ...claim }],
            () => effects.reserve(key, claim, attempt),
            (one) => [one],
          ),
        commit: (key, claim, result, ...more) =>
          logged(
            key,
            [{ kind: 'commit', ...claim, given: digest(result) }],
            () => effects.commit(key, claim, result, ...more),
            (one) => [one],
          ),
        fence: (key, ids) =>
          logged(
            key,
            fences(ids),
            () => effects.fence(key, ids),
            (all) => all,
          ),
      },
      writes: {
        ...writes,
        apply: (key, batch) =>
          logged(
            key,
            [...fences(batch.fence), ...(batch.reserve ? [{ kind: 'reserve', ...batch.reserve.claim }] : [])],
            () => writes.apply(key, batch),
            ({ fenced, reservation }) => [...fenced, ...(reservation ? [reservation] : [])],
          ),
      },
    };
  },
};
