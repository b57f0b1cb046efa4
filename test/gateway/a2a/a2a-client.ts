/** The protocol's own client, with a token, and what its user has after a stream of updates. */
import type { StreamResponse } from '@a2a-js/sdk' with { 'resolution-mode': 'import' };
import type { Client } from '@a2a-js/sdk/client' with { 'resolution-mode': 'import' };

export const TOKEN = 'a-token-that-only-tests-have';

export async function clientOf(url: string, token = TOKEN): Promise<Client> {
  const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } = await import('@a2a-js/sdk/client');
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    return fetch(input, { ...init, headers });
  };
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return new ClientFactory(options).createFromUrl(url);
}

export async function collect(events: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const all: StreamResponse[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const STATES = [
  ...['UNSPECIFIED', 'SUBMITTED', 'WORKING', 'COMPLETED', 'FAILED', 'CANCELED', 'INPUT_REQUIRED', 'REJECTED', 'AUTH_REQUIRED'],
];

export function stateIn(result: object): string {
  const { status } = result as { status?: { state: number } };
  return `TASK_STATE_${STATES[status?.state ?? 0] ?? ''}`;
}

/** The texts of the artifacts, put together as the protocol says. */
export function artifactsAfter(events: readonly StreamResponse[]): string[] {
  const texts = new Map<string, string>();
  const textOf = (parts: readonly { readonly content?: { readonly value: unknown } | undefined }[]): string =>
    parts.map(({ content }) => String(content?.value)).join('');
  for (const { payload } of events) {
    if (payload?.$case === 'task') for (const { artifactId, parts } of payload.value.artifacts) texts.set(artifactId, textOf(parts));
    if (payload?.$case !== 'artifactUpdate' || payload.value.artifact === undefined) continue;
    const { append, artifact } = payload.value;
    texts.set(artifact.artifactId, (append ? (texts.get(artifact.artifactId) ?? '') : '') + textOf(artifact.parts));
  }
  return [...texts.values()].filter((text) => text !== '');
}
