import { otherSubjects } from './ai-sdk-makers.js';
import { describeProvider } from './conformance.js';

describe.each(otherSubjects.map((subject) => [subject.provider, subject] as const))('%s', (_, subject) => {
  describeProvider(subject);
});
