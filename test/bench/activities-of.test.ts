import { activitiesOf, countedInWords } from '../../bench/activities-of.js';
import type { HistoryEvent } from '../../bench/history.js';

test('a turn’s activities are known by their types, and a model step that did not call by its reason', () => {
  const events = [
    scheduled(5, 'model-step'),
    completed(5, { kind: 'deferred', deferred: 'settings' }),
    scheduled(11, 'model-step'),
    completed(11, { answer: 'done' }),
    scheduled(17, 'store-step'),
    completed(17, null),
    scheduled(23, 'model-step'),
  ];
  const ran = activitiesOf(events);
  expect(ran).toEqual([
    { type: 'model-step', deferred: 'settings' },
    { type: 'model-step' },
    { type: 'store-step' },
    { type: 'model-step' },
  ]);
  expect(countedInWords(ran)).toBe('1 × model-step deferred (settings), 2 × model-step, 1 × store-step');
});

function scheduled(eventId: number, name: string): HistoryEvent {
  return { eventId: eventId as never, activityTaskScheduledEventAttributes: { activityType: { name } } };
}

function completed(scheduledEventId: number, result: unknown): HistoryEvent {
  const payloads = [{ data: Buffer.from(JSON.stringify(result)) }];
  return { activityTaskCompletedEventAttributes: { scheduledEventId: scheduledEventId as never, result: { payloads } } };
}
