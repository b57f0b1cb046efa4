import { FORMS, live } from './forms.js';

test('in any life of one that is stepped through, with breakpoints, no rule is broken', () => live(FORMS.stepped));
