/** What every provider must do, through a package of the AI SDK; through others: ai-sdk-conformance.slow.test.ts. */
import { bedrock } from './ai-sdk-makers.js';
import { describeProvider } from './conformance.js';

describeProvider(bedrock);
