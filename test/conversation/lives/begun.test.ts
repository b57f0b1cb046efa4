import { FORMS, live } from './forms.js';

test('in any life of one that begins with turns of another, or works for another, no rule is broken', () => live(FORMS.begun));
