/** Ids of responses: the conversation and the turn are in them, so that any gateway finds both. */
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { turnId } from '../../records/identity.js';
import { GatewayError } from '../core/errors.js';

export interface ResponseName {
  readonly conversation: string;
  readonly turn: string;
  /** The last of the calls that the client had answered before it. */
  readonly after?: string;
}

const NAME = /^(.{1,64}):turn_(\d{1,15})(\/c\d{1,6})?$/;

/** A message that cleared the session has no turn: its id names `turn_0000`, which there never is. */
export function responseId(conversation: string, turn: string | null, after?: string): string {
  return `resp_${Buffer.from(`${conversation}:${after ?? turn ?? turnId(0)}`).toString('base64url')}`;
}

/** Throws `not-found` for what this gateway cannot have given out. */
export function readResponseId(id: string, param: string): ResponseName {
  const [, conversation = '', number = '', call] =
    NAME.exec(id.startsWith('resp_') && id.length < 200 ? Buffer.from(id.slice(5), 'base64url').toString() : '') ?? [];
  const turn = turnId(Number(number));
  if (ID_PATTERN.test(conversation)) return { conversation, turn, ...(call !== undefined && { after: `${turn}${call}` }) };
  throw noResponse(param);
}

export function noResponse(param: string): GatewayError {
  return new GatewayError({ status: 404, type: 'response-not-found', message: 'there is no response of that id', param });
}
