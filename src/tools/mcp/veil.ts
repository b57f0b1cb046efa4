/** What a server was given in confidence does not come back in what is said about it. */
import type { McpServer } from './server-config.js';

const SHORTEST = 8;

/** `server` is expanded. */
export function createVeil(server: McpServer): (text: string) => string {
  const given = server.type === 'http' ? [...Object.values(server.headers), ...inAddress(server.url)] : Object.values(server.env);
  // A header says what kind of key it is before the key.
  const secrets = given.flatMap((value) => [value, ...value.split(' ')]).filter((value) => value.length >= SHORTEST);
  return (text) => secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text);
}

function inAddress(url: string): string[] {
  const parsed = URL.parse(url);
  return parsed ? [parsed.password, parsed.search, ...parsed.searchParams.values()] : [];
}
