/** What holds for every operation of the native API, whatever it does. */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { GatewayVariables } from '../../src/gateway/context.js';
import { toProblem } from '../../src/gateway/core/errors.js';
import { add } from '../../src/gateway/native/operation.js';

test('what is not done within two minutes says so, and that it may still be', async () => {
  jest.useFakeTimers();
  try {
    const app = new OpenAPIHono<GatewayVariables>();
    app.use((context, next) => {
      for (const name of ['closing', 'admitted'] as const) context.set(name, new AbortController().signal);
      return next();
    });
    add(app, { name: 'wait', method: 'post', path: '/wait', tag: 'tests', summary: 'Wait', act: () => new Promise(() => undefined) });
    app.onError((error, context) => context.json(toProblem(error), toProblem(error).status));
    const asked = Promise.resolve(app.request('/wait', { method: 'POST' }));
    await jest.advanceTimersByTimeAsync(120_000);
    const answer = await asked;
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { type: 'unfinished', message: expect.stringContaining('Wait. It may still be done') as unknown },
    ]);
  } finally {
    jest.useRealTimers();
  }
});
