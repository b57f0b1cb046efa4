/**
 * The people of a bad week, and what they were told. Each says the next thing once the last one is answered, by the client or through the
 * gateway, again and again by the same id until there is an answer: so what they have in hand at the end is what must be in the store.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PerduraClient } from '../../../src/client.js';
import type { Acknowledged } from '../../chaos/invariants.js';
import { sendThroughGateway, type GatewayPlace } from '../../storm/gateway-client.js';
import { answerTo } from '../../support/echo-model.js';
import { until } from '../../support/scene.js';

/** Tools of support/ledger-tools.cjs; a payment waits for a person, and must not be made twice. */
export type Wish = 'words' | 'note' | 'pay';

export interface Told extends Acknowledged {
  readonly text: string;
  readonly begin: number;
  readonly end: number;
}

/** Of a call that waits for a person. */
export interface Waiting {
  readonly callId: string;
  readonly hash?: string;
}

/** `talks` all the week, says two things and is `quiet` then, or `waits` for a decision since Monday. */
export type Kind = 'talks' | 'quiet' | 'waits';

export interface Person {
  readonly id: string;
  readonly kind: Kind;
  /** Oldest first. */
  readonly told: Told[];
}

/** What they reach, which is replaced in the middle of the week. */
export interface Reach {
  readonly client: () => PerduraClient;
  readonly gateway: () => GatewayPlace;
  readonly leaving: AbortSignal;
}

const WISHES: readonly Wish[] = ['words', 'note', 'words', 'pay'];
const THINKS_MS = 400;
const LOOKS_MS = 300;

export interface People {
  readonly all: readonly Person[];
  /** A conversation that has begun. */
  begin(kind: Kind): Promise<Person>;
  /** Until it is answered; `decides`: who waits for a decision decides it. */
  say(person: Person, wish: Wish, decides?: boolean): Promise<void>;
  waiting(person: Person): Promise<Waiting>;
  approve(person: Person, waiting: Waiting): Promise<void>;
  /** Every one that talks has had an answer to what it said since, and another one. */
  goOn(since: number): Promise<void>;
  /** Nothing more is said; resolves when all is answered. Throws what a person could not bear. */
  rest(): Promise<void>;
}

export function createPeople(reach: Reach, name: string): People {
  const all: Person[] = [];
  const talking: Promise<void>[] = [];
  let isOver = false;
  let failure: Error | undefined;

  async function waiting({ id }: Person): Promise<Waiting> {
    const [call] = await until(`what waits in ${id}`, async () => {
      const found = await reach.client().approvals(id);
      return found.length > 0 ? found : undefined;
    });
    return { callId: call!.callId, ...(call!.hash !== undefined && { hash: call!.hash }) };
  }

  const approve = ({ id }: Person, { callId, hash }: Waiting): Promise<void> =>
    until(`a decision of ${id} that is taken`, () =>
      reach
        .client()
        .decide(id, { callId, decision: 'approve', hash })
        .then(() => true),
    ).then(() => undefined);

  /** Whatever is away just now: what waits is decided, as soon as it can be seen. */
  async function decideUntil(person: Person, isAnswered: () => boolean): Promise<void> {
    while (!isAnswered() && !reach.leaving.aborted) {
      const found = await reach
        .client()
        .approvals(person.id)
        .catch(() => []);
      for (const { callId, hash } of found)
        await reach
          .client()
          .decide(person.id, { callId, decision: 'approve', hash })
          .catch(() => undefined);
      await sleep(LOOKS_MS);
    }
  }

  async function say(person: Person, wish: Wish, decides = true): Promise<void> {
    const { id, told } = person;
    const messageId = `${id}-m${told.length + 1}`;
    const text = wish === 'words' ? `${messageId}: only words` : `${messageId}: ${wish} ${messageId}`;
    const begin = Date.now();
    const { leaving } = reach;
    let isAnswered = false;
    const deciding = wish === 'pay' && decides ? decideUntil(person, () => isAnswered) : undefined;
    try {
      const message = { id: messageId, text };
      const result =
        told.length % 2 === 0
          ? await reach.client().send(id, message, { signal: leaving })
          : await sendThroughGateway(reach.gateway(), id, message, leaving);
      told.push({ messageId, text, result, expectedText: answerTo(text), begin, end: Date.now() });
    } finally {
      isAnswered = true;
    }
    await deciding;
  }

  const failed =
    ({ id }: Person) =>
    (cause: unknown): void =>
      void (failure ??= new Error(`${id} cannot go on`, { cause }));

  async function talk(person: Person): Promise<void> {
    for (let n = all.indexOf(person); !isOver; n += 1) {
      await say(person, WISHES[n % WISHES.length]!);
      await sleep(THINKS_MS);
    }
  }

  return {
    all,
    say,
    waiting,
    approve,
    async begin(kind) {
      const person: Person = { id: `${name}-${all.length + 1}-${kind}`, kind, told: [] };
      all.push(person);
      await until(`${person.id} begun`, () => reach.client().start(person.id, { scope: `${name}-${all.length % 3}` }));
      if (kind === 'talks') talking.push(talk(person).catch(failed(person)));
      return person;
    },
    async goOn(since) {
      const talkers = all.filter(({ kind }) => kind === 'talks');
      const isThrough = ({ told }: Person): boolean => told.filter(({ begin }) => begin >= since).length >= 2;
      await until(
        'people who go on',
        () => {
          if (failure !== undefined) return true;
          return talkers.every(isThrough);
        },
        300_000,
      );
      if (failure !== undefined) throw failure;
    },
    async rest() {
      isOver = true;
      await Promise.all(talking);
      if (failure !== undefined) throw failure;
    },
  };
}
