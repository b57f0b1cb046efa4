import { toToolInteractions, toTraces, type RawTrace } from '../../src/memory/traces.js';
import { seedTraceSchema, toEntries } from '../../src/memory/seed-layout/seed-trace.js';
import { lateResultNotice } from '../../src/records/message.js';
import { calls, conversation, result, user, type Told } from './builders.js';

const tracesOf: (...turns: Told[]) => RawTrace[] = (...turns) => conversation(...turns).flatMap((entry) => toTraces(entry, 'conv_8'));

test('a call is pending, then a success or an error; fields are the seed’s', () => {
  const traces = tracesOf([
    1,
    user('go'),
    calls(['t/c1', 'list_directory', { path: 'src' }], ['t/c2', 'send'], ['t/c3', 'wait']),
    result('t/c1', 'app.ts', { name: 'list_directory' }),
    result('t/c2', 'no network', { name: 'send', outcome: 'error' }),
  ]);
  expect(toToolInteractions(traces)).toEqual([
    {
      tool_call_id: 't/c1',
      turn_id: 'turn_0001',
      tool_name: 'list_directory',
      arguments: { path: 'src' },
      result: 'app.ts',
      error: null,
      status: 'SUCCESS',
    },
    { tool_call_id: 't/c2', turn_id: 'turn_0001', tool_name: 'send', arguments: {}, result: null, error: 'no network', status: 'ERROR' },
    { tool_call_id: 't/c3', turn_id: 'turn_0001', tool_name: 'wait', arguments: {}, result: null, error: null, status: 'PENDING' },
  ]);
});

test.each(['rejected', 'cancelled', 'unknown'] as const)('%s is an error', (outcome) => {
  const [interaction] = toToolInteractions(tracesOf([1, calls(['c1']), result('c1', 'why', { outcome })]));
  expect(interaction).toMatchObject({ status: 'ERROR', error: 'why', result: null });
});

test('an empty error is an error', () => {
  expect(toToolInteractions(tracesOf([1, calls(['c1']), result('c1', '', { outcome: 'error' })]))[0]?.status).toBe('ERROR');
});

test('a late result keeps the turn of its call, also where it is written before it', () => {
  const late = tracesOf([1, user('a'), calls(['c1'])], [2, user('b')], [1, result('c1')]);
  expect(toToolInteractions(late, 'turn_0001')).toMatchObject([{ tool_call_id: 'c1', status: 'SUCCESS', turn_id: 'turn_0001' }]);
  expect(toToolInteractions(late, 'turn_0002')).toEqual([]);
  expect(toToolInteractions(late.toReversed())).toMatchObject([{ tool_call_id: 'c1', status: 'SUCCESS' }]);
});

test('a result that came after a stop takes the place of the one that did not know, in the turn of its call, also once it is imported', () => {
  const late = { callId: 'turn_0001/c1', name: 'look', text: 'paid' };
  const unknown = { ...result('turn_0001/c1', 'Interrupted'), outcome: 'unknown' } as const;
  const notice = { role: 'user', text: lateResultNotice(late), from: 'notice', late } as const;
  const traces = tracesOf([1, user('a'), calls(['turn_0001/c1']), unknown], [2, user('b'), notice]);
  expect(traces.at(-1)).toMatchObject({ trace_type: 'tool_result', turn_id: 'turn_0001', tool_result: 'paid', tags: ['late'] });
  expect(toToolInteractions(traces)).toMatchObject([{ turn_id: 'turn_0001', status: 'SUCCESS', result: 'paid', error: null }]);
  const read = toEntries(traces.map((trace) => seedTraceSchema.parse(trace)));
  expect(read.flatMap(({ message }) => (message.role === 'tool' ? [message.text] : []))).toEqual(['paid']);
  expect(read.map(({ turn }) => turn)).toEqual(['turn_0001', 'turn_0001', 'turn_0001', 'turn_0002']);
});

test('a result whose trace names a later turn belongs to the turn of its call', () => {
  const traces = tracesOf([1, user('a'), calls(['c1'])], [2, user('b'), result('c1')]);
  expect(toToolInteractions(traces, 'turn_0001')).toMatchObject([{ turn_id: 'turn_0001', status: 'SUCCESS' }]);
});

test('calls of one id take the results of that id in their order; a result too many is left out', () => {
  const traces = tracesOf([1, calls(['c1']), result('c1', 'first')], [2, calls(['c1']), result('c1', 'second'), result('c1', 'third')]);
  expect(toToolInteractions(traces).map((each) => [each.turn_id, each.result])).toEqual([
    ['turn_0001', 'first'],
    ['turn_0002', 'second'],
  ]);
});

test('a result whose call is lost is there, without arguments', () => {
  expect(toToolInteractions(tracesOf([3, result('c9', 'found')]))).toEqual([
    { tool_call_id: 'c9', turn_id: 'turn_0003', tool_name: 'look', arguments: null, result: 'found', error: null, status: 'SUCCESS' },
  ]);
});
