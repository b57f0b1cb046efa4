import type { WorkflowInternalsInterceptor } from '@temporalio/workflow';
import { interceptors } from '../../src/workflows/early-questions.js';

type Activation = Parameters<NonNullable<WorkflowInternalsInterceptor['activate']>>[0]['activation'];
type Jobs = NonNullable<Activation['jobs']>;
type Commands = Parameters<NonNullable<WorkflowInternalsInterceptor['concludeActivation']>>[0]['commands'];

const SIGNAL = { signalWorkflow: { signalName: 'message' } } as Jobs[number];
const UPDATE = { doUpdate: { name: 'send' } } as Jobs[number];
const RESULT = { resolveActivity: { seq: 1 } } as Jobs[number];
const DONE = { resolveActivity: { seq: 1, result: { completed: {} } } } as Jobs[number];
const CHILD = { resolveChildWorkflowExecutionStart: { seq: 1 } } as Jobs[number];
const QUESTION = { queryWorkflow: { queryId: 'legacy_query' } } as Jobs[number];
const OF_A_TASK = { queryWorkflow: { queryId: '5f3c' } } as Jobs[number];
const ACTIVITY = { scheduleActivity: { seq: 1 } } as Commands[number];
const TIMER = { startTimer: { seq: 1 } } as Commands[number];
const ANSWER = { updateResponse: { completed: {} } } as Commands[number];
const REFUSAL = { updateResponse: { rejected: {} } } as Commands[number];

/** Of the latest activation. */
let concluded: readonly Commands[number][] = [];

/** One run on one worker: each call is an activation, and answers whether it was refused. */
function run(): (historyLength: number, jobs: Jobs, commands?: Commands) => boolean {
  const [interceptor] = interceptors().internals ?? [];
  const { activate, concludeActivation } = interceptor as Required<WorkflowInternalsInterceptor>;
  return (historyLength, jobs, commands = []) => {
    const isQuestion = jobs.some(({ queryWorkflow }) => queryWorkflow);
    const activation = { historyLength, jobs, ...(!isQuestion && { timestamp: { nanos: historyLength } }) } as Activation;
    try {
      activate.call(interceptor, { activation, batchIndex: 0 }, () => undefined);
    } catch {
      return true;
    }
    concluded = concludeActivation.call(interceptor, { commands }, (input) => input).commands;
    return false;
  };
}

test.each([
  ['at once', 15, [RESULT]],
  ['with a signal between', 16, [RESULT, SIGNAL]],
  ['with an update, which is no event yet', 15, [RESULT, UPDATE]],
])('a question between two tasks of ours: the next one goes on, %s', (_, historyLength, jobs) => {
  const activate = run();
  activate(8, [SIGNAL], [ACTIVITY, TIMER]);
  expect(activate(8, [QUESTION])).toBe(false);
  expect(activate(historyLength, jobs)).toBe(false);
});

test.each([
  ['a task that began, and timed out', 11, [UPDATE]],
  ['the same, and a signal came', 12, [SIGNAL]],
  ['a task that another worker has done in between', 18, [RESULT]],
  ['a task that no worker took in time', 17, [RESULT]],
])('a question that came with %s: the next task is done again', (_, historyLength, jobs) => {
  const activate = run();
  activate(8, [SIGNAL], [ACTIVITY, TIMER]);
  activate(8, [QUESTION]);
  expect(activate(historyLength, jobs)).toBe(true);
});

test('an answer to an update is counted: after two tasks that timed out the next one is done again', () => {
  const activate = run();
  activate(8, [RESULT], [ANSWER]);
  activate(8, [QUESTION]);
  expect(activate(14, [UPDATE])).toBe(true);
});

test('an activity that has ended has begun as well: a task that timed out beside it is told from one of ours', () => {
  // The storm of seed 352446504: without this, history had the commands of both.
  const lost = run();
  lost(24, [CHILD]);
  lost(24, [QUESTION]);
  expect(lost(29, [DONE])).toBe(true);
  const ours = run();
  ours(24, [CHILD]);
  ours(24, [QUESTION]);
  expect(ours(30, [DONE])).toBe(false);
});

test('nothing is done again without a question, or after one that belongs to a task', () => {
  const activate = run();
  activate(8, [SIGNAL], [ACTIVITY, TIMER]);
  activate(8, [OF_A_TASK]);
  expect(activate(18, [RESULT])).toBe(false);
});

test('a task that leaves a timer cancelled and a signal to another conversation leaves that many events: one too soon is done again', () => {
  const activate = run();
  activate(23, [SIGNAL], [{ cancelTimer: { seq: 2 } }, { signalExternalWorkflowExecution: { seq: 1 } }, { startTimer: { seq: 3 } }]);
  activate(23, [QUESTION]);
  expect(activate(27, [SIGNAL, UPDATE])).toBe(true);
});

test.each<[what: string, jobs: Jobs, commands: Commands, isLeft: boolean]>([
  ['a signal that leads to nothing', [SIGNAL], [], true],
  ['a result, and a timer that is begun and cancelled at once', [RESULT], [TIMER, { cancelTimer: { seq: 1 } }], true],
  ['a signal and an update that is refused', [SIGNAL, UPDATE], [REFUSAL], true],
  ['an update that is refused, which is not in history', [UPDATE], [REFUSAL], false],
  ['a result that leads to an activity', [RESULT], [ACTIVITY], false],
  ['a question', [QUESTION], [], false],
])('a task leaves a command that changes nothing when it would leave none: %s', (_, jobs, commands, isLeft) => {
  const activate = run();
  activate(3, [SIGNAL], [ACTIVITY]);
  activate(8, jobs, commands);
  expect(concluded.some(({ modifyWorkflowProperties }) => modifyWorkflowProperties)).toBe(isLeft);
});

test('a task whose update was refused leaves no event', () => {
  const activate = run();
  activate(8, [UPDATE], [REFUSAL]);
  activate(8, [QUESTION]);
  expect(activate(9, [UPDATE])).toBe(false);
});
