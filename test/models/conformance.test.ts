import { describeProvider } from './conformance.js';
import { subjects } from './subjects.js';

describe.each(subjects.map((subject) => [subject.provider, subject] as const))('%s', (_, subject) => {
  describeProvider(subject);
});
