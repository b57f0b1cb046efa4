/** What the Messages API looks at before it reads a request: headers, and whether the body is JSON that its parser takes. */
import type { IncomingHttpHeaders } from 'node:http';
import { apiError, invalidRequest, type ApiError } from './api-error.js';

export const maxBodyBytes = 32 * 1024 * 1024;

/** The SDK's versions from 1.0 on send the second; both are in use. */
export const apiVersions: readonly string[] = ['2023-06-01', '2026-10-21'];

/** A key may come as `x-api-key` or, as the SDK sends it, as a bearer token. `apiKey`: the only one that is accepted. */
export function checkHeaders(headers: IncomingHttpHeaders, apiKey?: string): ApiError | undefined {
  const bearer = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
  const key = headers['x-api-key'] || bearer;
  if (!key) return apiError(401, 'x-api-key header is required');
  if (apiKey !== undefined && key !== apiKey) return apiError(401, headers['x-api-key'] ? 'invalid x-api-key' : 'Invalid bearer token');
  const version = headers['anthropic-version'];
  if (version === undefined) return invalidRequest('anthropic-version: header is required');
  return apiVersions.includes(String(version))
    ? undefined
    : invalidRequest(`anthropic-version: "${String(version)}" is not a valid version`);
}

export function checkBody(text: string): ApiError | undefined {
  const surrogate = loneSurrogate(text);
  if (surrogate) {
    const { what, at } = surrogate;
    return invalidRequest(`The request body is not valid JSON: ${what} in string: line 1 column ${at + 1} (char ${at})`);
  }
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return invalidRequest(`The request body is not valid JSON: ${(error as Error).message}`);
  }
}

/**
 * The API's JSON parser refuses half a character, which `JSON.stringify` happily writes as `\ud83d`:
 * a text cut in the middle of an emoji is enough.
 */
function loneSurrogate(json: string): { what: string; at: number } | undefined {
  // Every escape is taken whole, so that the second backslash of `\\ud83d` begins none.
  const escapes = /\\(?:u([0-9a-fA-F]{4})|[^u])/g;
  for (let match = escapes.exec(json); match; match = escapes.exec(json)) {
    const unit = match[1] === undefined ? 0 : parseInt(match[1], 16);
    if (isLow(unit)) return { what: 'invalid high surrogate', at: match.index };
    if (!isHigh(unit)) continue;
    const next = /^\\u([0-9a-fA-F]{4})/.exec(json.slice(escapes.lastIndex, escapes.lastIndex + 6));
    if (!next) return { what: 'no low surrogate', at: escapes.lastIndex };
    if (!isLow(parseInt(next[1] ?? '', 16))) return { what: 'invalid low surrogate', at: escapes.lastIndex };
    escapes.lastIndex += 6;
  }
  return undefined;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
