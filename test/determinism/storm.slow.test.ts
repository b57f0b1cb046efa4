import { stormTest } from './storm.js';

stormTest({ killsServer: false });
