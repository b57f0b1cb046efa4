/**
 * A turn as the events of a response. Pure: the same live events give the same numbers, in any gateway, and so a client that comes back
 * goes on after the number that it has.
 *
 * The text of a failed attempt is taken back: its item ends without content, and the next attempt has an item with a new id. If
 * live events were lost, the stream shows nothing more until the last event.
 *
 * @rule openai/whole-response-last: The last event has the whole response, as it is recorded. (test: test/gateway/texts-of-a-turn.test.ts)
 */
import type { AnswerSnapshot, FinalAnswer } from '../core/answer.js';
import {
  callItem,
  callItemId,
  endedResponse,
  itemId,
  messageItem,
  runningResponse,
  toStatus,
  textPart,
  type ResponseHead,
} from './response-object.js';

export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
}

export interface ResponseEvents {
  begin(): readonly ResponseEvent[];
  take(snapshot: AnswerSnapshot): readonly ResponseEvent[];
}

interface Item {
  readonly output: number;
  readonly at: number;
  text: string;
}

export function createResponseEvents(head: ResponseHead): ResponseEvents {
  let number = 0;
  let outputs = 0;
  /** Texts of items that stand and have ended. */
  const texts: string[] = [];
  /** By place, how many items were taken back. */
  const retakes: number[] = [];
  let open: Item | undefined;

  const event = (type: string, more: object): ResponseEvent => ({ type, ...more, sequence_number: number++ });
  const where = ({ output, at }: Item): object => ({ item_id: itemId(head, at, retakes[at]), output_index: output, content_index: 0 });

  const begin = (): ResponseEvent[] => {
    open = { output: outputs++, at: texts.length, text: '' };
    return [
      event('response.output_item.added', {
        output_index: open.output,
        item: messageItem(head, open.at, undefined, 'in_progress', retakes[open.at]),
      }),
      event('response.content_part.added', { ...where(open), part: textPart('') }),
    ];
  };

  const grow = (text: string): ResponseEvent[] => {
    const before = open === undefined ? begin() : [];
    if (open === undefined || text === '') return before;
    open.text += text;
    return [...before, event('response.output_text.delta', { ...where(open), delta: text, logprobs: [] })];
  };

  const close = (): ResponseEvent[] => {
    if (open === undefined) return [];
    const { output, at, text } = open;
    const ended = [
      event('response.output_text.done', { ...where(open), text, logprobs: [] }),
      event('response.content_part.done', { ...where(open), part: textPart(text) }),
      event('response.output_item.done', { output_index: output, item: messageItem(head, at, text, 'completed', retakes[at]) }),
    ];
    texts.push(text);
    open = undefined;
    return ended;
  };

  const takeBack = (): ResponseEvent[] => {
    if (open === undefined) return [];
    const { output, at } = open;
    const item = messageItem(head, at, undefined, 'incomplete', retakes[at]);
    open = undefined;
    retakes[at] = (retakes[at] ?? 0) + 1;
    return [event('response.output_item.done', { output_index: output, item })];
  };

  const show = (now: readonly string[], isOpen: boolean): ResponseEvent[] => {
    const events: ResponseEvent[] = [];
    for (;;) {
      const text = now[texts.length];
      if (open !== undefined && text?.startsWith(open.text) !== true) events.push(...takeBack());
      if (text === undefined) return events;
      events.push(...grow(text.slice(open?.text.length ?? 0)));
      if (isOpen && texts.length === now.length - 1) return events;
      events.push(...close());
    }
  };

  const called = ({ calls }: FinalAnswer): ResponseEvent[] =>
    calls.flatMap((call, at) => {
      const place = { item_id: callItemId(head, at), output_index: outputs++ };
      const given = JSON.stringify(call.input);
      return [
        event('response.output_item.added', { output_index: place.output_index, item: callItem(head, at, call, 'in_progress') }),
        event('response.function_call_arguments.delta', { ...place, delta: given }),
        event('response.function_call_arguments.done', { ...place, name: call.name, arguments: given }),
        event('response.output_item.done', { output_index: place.output_index, item: callItem(head, at, call, 'completed') }),
      ];
    });

  /** Text that streaming missed comes as separate items (openai/whole-response-last). */
  const finish = (ended: FinalAnswer): ResponseEvent[] => {
    const { result, texts: whole } = ended;
    const shown = [...texts, ...(open ? [open.text] : [])];
    const isBeginning = shown.every((text, at) => whole[at]?.startsWith(text) === true && (at === shown.length - 1 || whole[at] === text));
    const rest = [...(isBeginning ? show(whole, false) : takeBack()), ...called(ended)];
    const status = toStatus(result);
    const type = status === 'completed' || status === 'failed' ? status : 'incomplete';
    return [...rest, event(`response.${type}`, { response: endedResponse(head, ended, retakes) })];
  };

  return {
    begin: () => [
      event('response.created', { response: runningResponse(head) }),
      event('response.in_progress', { response: runningResponse(head) }),
    ],
    take: (snapshot) => (snapshot.kind === 'final' ? finish(snapshot) : show(snapshot.texts, snapshot.isOpen)),
  };
}
