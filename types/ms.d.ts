/**
 * Types of the package `ms`, which Temporal's types import. Its exports lead `require` past the types that it has, so a program without
 * `skipLibCheck` would not compile (TS7016). In the form of `@types/ms`, which other programs may have.
 */
declare module 'ms' {
  function ms(value: ms.StringValue, options?: ms.Options): number;
  function ms(value: number, options?: ms.Options): string;
  namespace ms {
    type Unit =
      | 'Years'
      | 'Year'
      | 'Yrs'
      | 'Yr'
      | 'Y'
      | 'Weeks'
      | 'Week'
      | 'W'
      | 'Days'
      | 'Day'
      | 'D'
      | 'Hours'
      | 'Hour'
      | 'Hrs'
      | 'Hr'
      | 'H'
      | 'Minutes'
      | 'Minute'
      | 'Mins'
      | 'Min'
      | 'M'
      | 'Seconds'
      | 'Second'
      | 'Secs'
      | 'Sec'
      | 's'
      | 'Milliseconds'
      | 'Millisecond'
      | 'Msecs'
      | 'Msec'
      | 'Ms';
    type UnitAnyCase = Unit | Uppercase<Unit> | Lowercase<Unit>;
    type StringValue = `${number}` | `${number}${UnitAnyCase}` | `${number} ${UnitAnyCase}`;
    interface Options {
      /** True: in words. */
      long?: boolean;
    }
  }
  export = ms;
}
