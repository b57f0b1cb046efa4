import { askWhileTasksWait, standInAWorld } from './asked-early.js';

standInAWorld();

test('asked while a decision and an update wait for a worker, it replays', () => askWhileTasksWait(0));
