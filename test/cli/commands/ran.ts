/** What commands are given and answer, in the tests of more than one. */
import type { Ran } from '../../support/run-perdura.js';

/** What a summarizer says. */
export const SUMMARY = JSON.stringify({
  episodic: { summary: 'They counted.', tags: ['counting'], salience: 0.7 },
  semantic: [{ fact: 'The person counts from one.', tags: ['preference'], confidence: 0.9, salience: 0.8 }],
});

/** Of a command that went well: its answer as data. */
export function parsed(ran: Ran): unknown {
  expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('cannot') as unknown });
  return JSON.parse(ran.stdout);
}
