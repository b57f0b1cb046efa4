/** What the doctor found, and how it is shown. */
import type { SettingInUse } from '../../config.js';

/** `broken`: nothing works, or work can be lost, until it is mended. */
export type Health = 'ok' | 'warning' | 'broken' | 'skipped';

export interface Finding {
  readonly what: string;
  readonly health: Health;
  readonly found: string;
  /** The command that mends it, or the thing to do. */
  readonly mend?: string;
}

export interface Report {
  readonly findings: readonly Finding[];
  readonly settings: readonly SettingInUse[];
}

export const ok = (what: string, found: string): Finding => ({ what, health: 'ok', found });
export const skipped = (what: string, found: string): Finding => ({ what, health: 'skipped', found });
export const warning = (what: string, found: string, mend: string): Finding => ({ what, health: 'warning', found, mend });
export const broken = (what: string, found: string, mend: string): Finding => ({ what, health: 'broken', found, mend });

export function isBroken({ findings }: Report): boolean {
  return findings.some(({ health }) => health === 'broken');
}

const MARKS: Readonly<Record<Health, string>> = { ok: '✔', warning: '!', broken: '✘', skipped: '–' };

export function renderReport({ findings, settings }: Report): string[] {
  const width = Math.max(...findings.map(({ what }) => what.length));
  const names = Math.max(...settings.map(({ name }) => name.length));
  const counted = (health: Health): number => findings.filter((finding) => finding.health === health).length;
  return [
    ...findings.flatMap(({ what, health, found, mend }) => [
      `${MARKS[health]} ${what.padEnd(width)}  ${found.replace(/\s*\n\s*/g, ' ')}`,
      ...(mend === undefined ? [] : [`  ${' '.repeat(width)}  → ${mend}`]),
    ]),
    '',
    'Settings',
    ...settings.map(({ name, value, from }) => `  ${name.padEnd(names)}  ${value ?? 'not set'}${from === 'nowhere' ? '' : `  (${from})`}`),
    '',
    counted('broken') > 0
      ? `${counted('broken')} broken, ${counted('warning')} to look at`
      : counted('warning') > 0
        ? `nothing is broken, ${counted('warning')} to look at`
        : 'all is well',
  ];
}

/** For a report that is shown to others: no name of a person's folder, no secret that slipped into an error. */
export function pasteable(text: string, secrets: readonly string[], home: string): string {
  const hidden = secrets.filter((secret) => secret.length > 3).reduce((all, secret) => all.replaceAll(secret, '***'), text);
  const withoutUrls = hidden.replace(/([a-z+]+:\/\/)[^\s/@]*@/gi, '$1***@');
  return home.length > 1 ? withoutUrls.replaceAll(home, '~') : withoutUrls;
}
