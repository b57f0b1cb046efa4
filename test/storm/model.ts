/**
 * The model of a storm: it answers by the plan in what it is asked, in bad weather. It is also the witness: of the messages that it sees,
 * in which order, and whether it is shown one twice.
 */
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import * as faults from '../support/provider-apis/faults.js';
import type { Cut, Reply } from '../support/provider-apis/reply.js';
import type { Journal } from './journal.js';
import { answerByPlan, marksIn } from './plans.js';
import { pick, type Random } from './random.js';

export interface StormModel {
  readonly answer: (request: ApiRequest) => Reply;
  /** From now on every answer is whole. */
  clearUp(): void;
  /** Messages that stood twice in one request. */
  readonly doubled: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

type Weather = (reply: Reply, random: Random) => Reply;

const CUTS: readonly Cut[] = ['before-headers', 1, 3, 'in-event', 'before-block-stop', 'before-message-delta', 'before-message-stop'];

/** By what it is counted as, with how often in a thousand requests. */
const WEATHER: Readonly<Record<string, { readonly often: number; readonly blow: Weather }>> = {
  'rate limited (429)': { often: 15, blow: (_, random) => faults.rateLimited({ retryAfter: pick(random, [0, 1, 1, 2]) }) },
  'overloaded (529)': { often: 15, blow: () => faults.overloaded() },
  'server error (500, 502)': { often: 10, blow: (_, random) => pick(random, [faults.httpError(500), faults.badGateway()]) },
  'overloaded in mid-stream': {
    often: 10,
    blow: (reply, random) => faults.errorEvent(pick(random, CUTS.slice(1)), 'overloaded_error', reply),
  },
  'stream cut': {
    often: 25,
    blow: (reply, random) => pick(random, [faults.fin, faults.reset, faults.halfClose])(pick(random, CUTS), reply),
  },
  garbage: {
    often: 15,
    blow: (reply, random) => pick(random, [faults.malformedJson(3, reply), faults.htmlInsteadOfSse(), faults.unknownEvent(3, reply)]),
  },
  slow: { often: 40, blow: (reply, random) => ({ ...reply, chunks: { size: 24, delayMs: 20 + 180 * random() } }) },
};

export function createStormModel(journal: Pick<Journal, 'sighted'>, random: Random): StormModel {
  const counts: Record<string, number> = { requests: 0 };
  const doubled = new Set<string>();
  let isFair = false;
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
  return {
    counts,
    get doubled() {
      return [...doubled];
    },
    clearUp: () => void (isFair = true),
    answer(request) {
      count('requests');
      const marks = marksIn(request);
      marks.filter((id, i) => marks.indexOf(id) !== i).forEach((id) => doubled.add(id));
      if ((request.tools ?? []).length > 0) journal.sighted(marks);
      const reply = answerByPlan(request);
      if (isFair) return reply;
      let at = 1_000 * random();
      for (const [what, { often, blow }] of Object.entries(WEATHER)) {
        at -= often;
        if (at >= 0) continue;
        count(what);
        return blow(reply, random);
      }
      return reply;
    },
  };
}
