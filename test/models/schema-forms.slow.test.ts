/** The laws of schema forms, over more schemas than each change waits for. */
import { holdsForAnswers, holdsForTools } from './schema-laws.js';

test('three hundred schemas of tools keep what they mean, in forms that each provider takes', () => holdsForTools(300));

test('three hundred schemas of answers keep what they mean, in forms that each provider takes', () => holdsForAnswers(300));
