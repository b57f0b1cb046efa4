import type { Row } from './row.js';
import { coldWorker } from './rows/cold-worker.js';
import { firstDelta } from './rows/first-delta.js';
import { flat } from './rows/flat.js';
import { fold } from './rows/fold.js';
import { fork } from './rows/fork.js';
import { gateway } from './rows/gateway.js';
import { heal } from './rows/heal.js';
import { history } from './rows/history.js';
import { hostile } from './rows/hostile.js';
import { idle } from './rows/idle.js';
import { manyTools } from './rows/many-tools.js';
import { lives } from './rows/lives.js';
import { memoryChannel } from './rows/memory-channel.js';
import { memory, work } from './rows/memory.js';
import { promptCost } from './rows/prompt-cost.js';
import { queue } from './rows/queue.js';
import { recall } from './rows/recall.js';
import { recovery } from './rows/recovery.js';
import { scripts } from './rows/scripts.js';
import { searchStores } from './rows/search-stores.js';
import { throughput } from './rows/throughput.js';
import { encryptedTurn, ordinaryTool, quickTool, textTurn } from './rows/turn-time.js';
import { workers } from './rows/workers.js';

export const ROWS: readonly Row[] = [
  textTurn,
  quickTool,
  ordinaryTool,
  encryptedTurn,
  flat,
  history,
  coldWorker,
  throughput,
  workers,
  firstDelta,
  gateway,
  hostile,
  manyTools,
  memoryChannel,
  memory,
  work,
  lives,
  scripts,
  promptCost,
  heal,
  fold,
  fork,
  queue,
  recall,
  searchStores,
  idle,
  recovery,
];
