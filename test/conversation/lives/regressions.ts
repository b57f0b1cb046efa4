/** Lives that once broke a rule, as `live` has printed them. */
import type { Choice } from './choices.js';
import type { Life } from './forms.js';

export const regressions: readonly (Life & { readonly story: string })[] = [
  {
    story: 'chunks that a program has chosen before a rewind: its sender was never answered',
    kind: 'own',
    choices: [
      { kind: 'say', id: 0, delivery: 'queue', bytes: 1 },
      { kind: 'rewind' },
      { kind: 'end', which: 0, how: 0, tools: 1 },
      { kind: 'ask', what: 'truncate' },
    ],
  },
  {
    story: 'three long messages steer a turn when a hand-over is due: it was more than a server takes',
    kind: 'own',
    choices: [
      { kind: 'say', id: 0, delivery: 'queue', bytes: 1 },
      { kind: 'due' },
      ...[1, 2, 3].map((id): Choice => ({ kind: 'say', id, delivery: 'steer', bytes: 800_000 })),
      { kind: 'end', which: 0, how: 4, tools: 3 },
    ],
  },
];
