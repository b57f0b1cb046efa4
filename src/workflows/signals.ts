/** Signals: they cannot be refused, so what cannot be read is listed in the status. */
import type { ConversationEvent } from '../conversation/event.js';
import { readParentOrder, readAppEvent, type ReadAppEvent } from '../conversation/protocol/stepping.js';
import { readChildNews, readDecision } from '../conversation/protocol/human-input.js';
import { readClose, readOptionalText, readTitle } from '../conversation/protocol/input.js';
import { readMessage } from '../conversation/protocol/message.js';
import { readConsolidationNews } from '../conversation/protocol/memory-contract.js';
import { newsRefusal } from '../conversation/turn/delegation.js';
import {
  childSignal,
  closeSignal,
  consolidatedSignal,
  decideSignal,
  eventSignal,
  interruptSignal,
  messageSignal,
  newSignal,
  parentSignal,
  renameSignal,
} from './messages.js';
import { arrival, type Handling } from './requests.js';

/** Signals are accepted before we see them; only Temporal's limit of 2 MiB holds them back. */
const SIGNAL_BYTES = 4 * 1024 * 1024;

export function handleSignals({ host, state, dispatch }: Pick<Handling, 'host' | 'state' | 'dispatch'>): void {
  const reject = (name: string, reason: string): void => dispatch({ kind: 'input-rejected', name, reason, at: host.now() });

  host.setHandler(messageSignal, (payload: unknown) => {
    const message = readMessage(payload, SIGNAL_BYTES);
    if (message.ok) dispatch(arrival(message.value, message.value.id ?? host.uuid(), host.now()));
    else reject('message', message.reason);
  });
  host.setHandler(newSignal, (payload: unknown) => {
    const id = readOptionalText(payload, 'new', 'id');
    if (id.ok) dispatch({ kind: 'reset-requested', resetId: id.value ?? host.uuid(), at: host.now() });
    else reject('new', id.reason);
  });
  host.setHandler(interruptSignal, (payload: unknown) => {
    const reason = readOptionalText(payload, 'interrupt', 'reason');
    // A stop is a stop, also when its reason cannot be read.
    dispatch({ kind: 'interrupt-requested', reason: reason.ok ? (reason.value ?? null) : null, at: host.now() });
  });
  host.setHandler(renameSignal, (payload: unknown) => {
    const title = readTitle(payload);
    if (!title.ok) return reject('rename', title.reason);
    dispatch({ kind: 'renamed', title: title.value, at: host.now() });
    host.upsertMemo({ title: title.value });
  });
  host.setHandler(consolidatedSignal, (payload: unknown) => {
    const news = readConsolidationNews(payload);
    // Of an earlier life: this one has not requested it.
    if (news.ok && news.value.life === state().identity.life) dispatch({ kind: 'consolidation-ended', ...news.value, at: host.now() });
    else if (!news.ok) reject('consolidated', news.reason);
  });
  host.setHandler(eventSignal, (payload: unknown) => {
    const event = readAppEvent(payload);
    if (event.ok) dispatch(appEventReceived(event.value, event.value.id ?? host.uuid(), host.now()));
    else reject('event', event.reason);
  });
  host.setHandler(parentSignal, (payload: unknown) => {
    const read = readParentOrder(payload);
    if (!read.ok) return reject('parent', read.reason);
    const { order, capability } = read.value;
    if (!state().parent || capability !== state().capability) return reject('parent', 'parent.capability is not the one of its start');
    dispatch({ kind: 'parent-ordered', order, at: host.now() });
  });
  host.setHandler(decideSignal, (payload: unknown) => {
    const decision = readDecision(payload);
    if (decision.ok) dispatch({ kind: 'decided', decision: decision.value, at: host.now() });
    else reject('decide', decision.reason);
  });
  host.setHandler(childSignal, (payload: unknown) => {
    const news = readChildNews(payload);
    if (!news.ok) return reject('child', news.reason);
    const refused = newsRefusal(state(), news.value);
    if (refused !== undefined) return reject('child', refused);
    const { callId } = news.value;
    if (news.value.kind === 'asks') dispatch({ kind: 'child-asks', callId, asks: news.value.asks, at: host.now() });
    else if (news.value.kind === 'control') dispatch({ kind: 'child-stepped', callId, control: news.value.control, at: host.now() });
    else dispatch({ kind: 'child-ended', callId, report: news.value.report, at: host.now() });
  });
  host.setHandler(closeSignal, (payload?: unknown) => {
    const close = readClose(payload);
    if (close.ok) dispatch({ kind: 'close-requested', at: host.now(), ...close.value });
    else reject('close', close.reason);
  });
  host.onOtherSignal((name) => {
    reject(name, 'no signal of that name');
  });
}

export function appEventReceived({ type, payload, wait }: ReadAppEvent, id: string, at: number): ConversationEvent {
  return { kind: 'app-event-received', id, type, payload, ...(wait && { isAwaited: true }), at };
}
