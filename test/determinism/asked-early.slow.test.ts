import { askAroundHandOvers, askWhileTasksWait, CONVERSATIONS, standInAWorld } from './asked-early.js';

standInAWorld();

test('asked while a worker has died with some of the tasks, it replays', () => askWhileTasksWait(CONVERSATIONS));

test('nor does a hand-over change that, to whichever side the lost task was', () => askAroundHandOvers());
