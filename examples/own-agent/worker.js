import { createWorker } from 'perdura/worker';
import own from './perdura.config.mjs';

const worker = createWorker({ ...own, onReady: () => console.log('ready') });

await worker.run();
