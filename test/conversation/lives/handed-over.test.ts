import { FORMS, live } from './forms.js';

test('a hand-over, wherever nothing is in flight, changes nothing', () => live(FORMS['handed-over']));
