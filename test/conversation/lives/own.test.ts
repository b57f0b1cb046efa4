import { FORMS, live } from './forms.js';

test('in any life of a conversation that is only said to, interrupted, decided about and closed, no rule is broken', () => live(FORMS.own));
