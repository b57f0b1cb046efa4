/** Loaded before a worker (`--require`): a machine whose clock is CLOCK_OFF_MS ahead of this one, or behind it. Only its wall clock: how long something takes is as ever. */
const offBy = Number(process.env.CLOCK_OFF_MS);
const RealDate = globalThis.Date;

globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + offBy);
    else super(...given);
  }

  static now() {
    return RealDate.now() + offBy;
  }
};
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + offBy });
