/**
 * Times in words: "last May", "2024-05", "yesterday", "vor drei Tagen". They are resolved against a moment that is given: of a question the
 * asker's clock, of a message when it was sent. Days are UTC's.
 */
import { folded, type Word } from './words.js';

/** Epoch days, `to` not in it. Of a month that names no year: `yearly`, and the range is its latest one. */
export interface Days {
  readonly from: number;
  readonly to: number;
  readonly yearly?: boolean;
}

const DAY_MS = 86_400_000;
/** Beyond it a year more is no date any more. */
const LAST_SECOND = 8e12;
/** Of one text. */
const MAX_DATES = 16;

const LOCALES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'sv', 'ru'];
const MONTHS: ReadonlyMap<string, number> = namesIn({ month: 'long' }, 12, (i) => Date.UTC(2024, i, 15));
const SHORT_MONTHS: ReadonlyMap<string, number> = new Map(
  'jan feb mar apr jun jul aug sep sept oct nov dec'
    .split(' ')
    .map((name) => [name, name === 'sept' ? 8 : 'janfebmaraprmayjunjulaugsepoctnovdec'.indexOf(name) / 3]),
);
/** 0 is Sunday. 2024-09-01 was one. */
const WEEKDAYS: ReadonlyMap<string, number> = namesIn({ weekday: 'long' }, 7, (i) => Date.UTC(2024, 8, 1 + i));
/** Months that are other words too: only with a day, a year or a word of time beside them. */
const AMBIGUOUS: ReadonlySet<string> = new Set(['may', 'march', 'mars', 'august', 'mart', 'marzo', 'mai', 'mei', 'maj', 'set', 'maio']);

const SHIFTS: ReadonlyMap<string, number> = words({
  '-2': 'anteayer antier vorgestern eergisteren',
  '-1': 'yesterday gestern hier ayer ieri ontem gisteren igar вчера',
  '0': "today tonight heute aujourd'hui hoy oggi hoje vandaag idag сегодня",
  '1': 'tomorrow demain manana domani amanha imorgon завтра',
});
const UNITS: ReadonlyMap<string, 'day' | 'week' | 'month' | 'year'> = words({
  day: 'day days tag tage tagen jour jours dia dias giorno giorni dag dagen dagar день дня днеи',
  week: 'week weeks weekend woche wochen semaine semaines semana semanas settimana settimane weken vecka veckan veckor неделя недели неделе недель неделю',
  month:
    'month months monat monate monaten monats mois mes meses mese mesi maand maanden manad manaden manader месяц месяца месяце месяцев',
  year: 'year years jahr jahre jahren jahres annee annees an ans ano anos anno anni jaar jaren ar aret год года году лет',
});
const DIRECTIONS: ReadonlyMap<string, -1 | 0 | 1> = words({
  '-1': 'last past previous letzte letzten letzter letztes letztem vorige vorigen voriges vergangene vergangenen dernier derniere passe passee pasado pasada ultimo ultima scorso scorsa passado passada vorige afgelopen forra senaste прошлыи прошлая прошлои прошлую прошлом прошлого',
  '0': 'this diese diesen dieser dieses ce cette este esta esto questo questa deze dit denna detta этот эта этои этом эту',
  '1': 'next coming nachste nachsten nachster nachstes kommende kommenden prochain prochaine proximo proxima prossimo prossima volgende nasta следующии следующеи следующую',
});
const AGO: ReadonlySet<string> = new Set('ago vor hace fa atras geleden sedan назад earlier ya'.split(' '));
const NUMBERS: ReadonlyMap<string, number> = words({
  1: 'a an one ein eine einem einer un une una uno um uma een en один одну',
  2: 'two couple zwei deux dos due dois duas twee tva два две',
  3: 'three few drei trois tres tre drie три',
  4: 'four vier quatre cuatro quattro quatro fyra четыре',
  5: 'five funf cinq cinco cinque vijf fem пять',
  6: 'six sechs seis sei zes sex шесть',
  7: 'seven sieben sept siete sette sete zeven sju семь',
  8: 'eight acht huit ocho otto oito atta восемь',
  9: 'nine neun neuf nueve nove negen nio девять',
  10: 'ten zehn dix diez dieci dez tien tio десять',
});
const ISO = /(?<![\d-])((?:19|20)\d\d)-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?(?![\d-])/g;
const DOTTED = /(?<![\d.])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.((?:19|20)\d\d)(?!\d)/g;
const YEAR = /^(?:19|20)\d\d$/;

/** `at`: epoch seconds. */
export function daysIn(text: string, spoken: readonly Word[], at: number): Days[] {
  const found: Days[] = [];
  const numeric = /\d[-.]\d/.test(text);
  if (numeric) {
    for (const [, year = '', month = '', day] of text.matchAll(ISO))
      found.push(dayOrMonth(+year, +month - 1, day === undefined ? undefined : +day));
    for (const [, day = '', month = '', year = ''] of text.matchAll(DOTTED)) found.push(dayOrMonth(+year, +month - 1, +day));
  }
  // A clock that is no clock names no days.
  const today = Math.abs(at) < LAST_SECOND ? toEpochDay(at) : 0;
  const plain = spoken.map(({ text: word }) => folded(word));
  for (const [i, word] of plain.entries()) {
    if (found.length >= MAX_DATES) break;
    const shift = SHIFTS.get(word);
    if (shift !== undefined) found.push(oneDay(today + shift));
    const month = MONTHS.get(word) ?? SHORT_MONTHS.get(word);
    if (month !== undefined) found.push(...monthAt(plain, i, month, today));
    const weekday = WEEKDAYS.get(word);
    if (weekday !== undefined) found.push(weekdayAt(plain, i, weekday, today));
    const unit = UNITS.get(word);
    if (unit !== undefined) found.push(...unitAt(plain, i, unit, today));
    if (!numeric && YEAR.test(word) && monthBeside(plain, i) === undefined) found.push(wholeYear(+word));
  }
  return found;
}

/** Epoch days. */
function toEpochDay(seconds: number): number {
  return Math.floor(seconds / 86_400);
}

/** Times are epoch seconds: the latest `to` is not in it. With `yearly` the same days of every year from `first` to `last`. */
export function toTimeRanges({ from, to, yearly }: Days, first: number, last: number): { readonly from: number; readonly to: number }[] {
  if (yearly !== true) return [{ from: from * 86_400, to: to * 86_400 }];
  const at = new Date(from * DAY_MS);
  const [month, day, length] = [at.getUTCMonth(), at.getUTCDate(), to - from];
  const years = [new Date(first * 1000).getUTCFullYear(), new Date(last * 1000).getUTCFullYear()] as const;
  return Array.from({ length: Math.min(100, Math.max(0, years[1] - years[0] + 1)) }, (_, i) => {
    const begin = Date.UTC(years[0] + i, month, day) / 1000;
    return { from: begin, to: begin + length * 86_400 };
  });
}

/** How a text that mentions these days is found: words that no text has. */
export function dayTerms({ from, to, yearly }: Days): string[] {
  const at = new Date(from * DAY_MS);
  const iso = at.toISOString();
  if (yearly === true) return [to - from > 1 ? `\u0001m${iso.slice(5, 7)}` : `\u0001y${iso.slice(5, 10)}`];
  const length = to - from;
  if (length > 31) return [`\u0001${iso.slice(0, 4)}`];
  if (length > 27) return [`\u0001${iso.slice(0, 7)}`];
  return Array.from({ length }, (_, i) => `\u0001${new Date((from + i) * DAY_MS).toISOString().slice(0, 10)}`);
}

/** The same of what a text mentions, with all that holds it. */
export function mentionTerms(days: Days): string[] {
  const iso = new Date(days.from * DAY_MS).toISOString();
  const terms = dayTerms(days);
  if (days.yearly === true) return [...terms, `\u0001m${iso.slice(5, 7)}`];
  if (days.to - days.from > 31) return terms;
  return [
    ...terms,
    `\u0001${iso.slice(0, 4)}`,
    `\u0001${iso.slice(0, 7)}`,
    `\u0001m${iso.slice(5, 7)}`,
    ...(terms.length === 1 ? [`\u0001y${iso.slice(5, 10)}`] : []),
  ];
}

function monthAt(plain: readonly string[], i: number, month: number, today: number): Days[] {
  const number =
    dayNumber(plain[i - 1]) ??
    dayNumber(plain[i + 1]) ??
    (['of', 'de', 'di'].includes(plain[i - 1] ?? '') ? dayNumber(plain[i - 2]) : undefined);
  const year = [plain[i + 1], plain[i + 2], plain[i + 3]].find((word) => word !== undefined && YEAR.test(word));
  const direction = directionBeside(plain, i);
  const isSure = number !== undefined || year !== undefined || direction !== undefined;
  const before = plain[i - 1] ?? '';
  if (!isSure && AMBIGUOUS.has(plain[i] ?? '') && !/^(?:in|im|en|since|seit|during|by|early|late|mid|until|em|till|i|depuis)$/.test(before))
    return [];
  if (year !== undefined) return [dayOrMonth(+year, month, number)];
  const now = new Date(today * DAY_MS);
  const thisYear = now.getUTCFullYear();
  if (direction !== undefined && number === undefined) {
    const passed = now.getUTCMonth() > month;
    if (direction === -1) return [dayOrMonth(passed ? thisYear : thisYear - 1, month)];
    if (direction === 1) return [dayOrMonth(now.getUTCMonth() < month ? thisYear : thisYear + 1, month)];
    return [dayOrMonth(thisYear, month)];
  }
  return [{ ...dayOrMonth(thisYear, month, number), yearly: true }];
}

function weekdayAt(plain: readonly string[], i: number, weekday: number, today: number): Days {
  const now = (((today + 4) % 7) + 7) % 7;
  const direction = directionBeside(plain, i);
  const back = (now - weekday + 7) % 7;
  if (direction === 1) return oneDay(today + ((weekday - now + 7) % 7 || 7));
  return oneDay(today - (back === 0 && direction === -1 ? 7 : back));
}

function unitAt(plain: readonly string[], i: number, unit: 'day' | 'week' | 'month' | 'year', today: number): Days[] {
  const count = parseNumber(plain[i - 1]);
  const near = [plain[i + 1], plain[i - 2], plain[i - 3]];
  const isAgo = count !== undefined && (near.some((word) => word !== undefined && AGO.has(word)) || `${near[2]} ${near[1]}` === 'y a');
  if (isAgo) {
    if (count > 100) return [];
    if (unit === 'day') return [oneDay(today - count)];
    if (unit === 'week') return [{ from: today - 7 * count - 1, to: today - 7 * count + 2 }];
    return [shifted(unit, -count, today)];
  }
  const direction = directionBeside(plain, i);
  if (direction === undefined || unit === 'day') return [];
  if (unit !== 'week') return [shifted(unit, direction, today)];
  const monday = today - ((((today + 3) % 7) + 7) % 7);
  return [{ from: monday + 7 * direction, to: monday + 7 * direction + 7 }];
}

function shifted(unit: 'month' | 'year', by: number, today: number): Days {
  const now = new Date(today * DAY_MS);
  if (unit === 'year') return wholeYear(now.getUTCFullYear() + by);
  return dayOrMonth(now.getUTCFullYear(), now.getUTCMonth() + by);
}

function directionBeside(plain: readonly string[], i: number): -1 | 0 | 1 | undefined {
  const [before, after] = [plain[i - 1], plain[i + 1]];
  return (before === undefined ? undefined : DIRECTIONS.get(before)) ?? (after === undefined ? undefined : DIRECTIONS.get(after));
}

function monthBeside(plain: readonly string[], i: number): number | undefined {
  return [plain[i - 1], plain[i - 2], plain[i - 3]]
    .map((word) => MONTHS.get(word ?? '') ?? SHORT_MONTHS.get(word ?? ''))
    .find((month) => month !== undefined);
}

function dayNumber(word: string | undefined): number | undefined {
  const [, digits] = /^(\d{1,2})(?:st|nd|rd|th|er|e|o)?$/.exec(word ?? '') ?? [];
  return digits !== undefined && +digits >= 1 && +digits <= 31 ? +digits : undefined;
}

function parseNumber(word: string | undefined): number | undefined {
  if (word === undefined) return undefined;
  return /^\d{1,4}$/.test(word) ? +word : NUMBERS.get(word);
}

function dayOrMonth(year: number, month: number, day?: number): Days {
  if (day !== undefined) return oneDay(Math.floor(Date.UTC(year, month, day) / DAY_MS));
  return { from: Math.floor(Date.UTC(year, month, 1) / DAY_MS), to: Math.floor(Date.UTC(year, month + 1, 1) / DAY_MS) };
}

function wholeYear(year: number): Days {
  return { from: Math.floor(Date.UTC(year, 0, 1) / DAY_MS), to: Math.floor(Date.UTC(year + 1, 0, 1) / DAY_MS) };
}

function oneDay(day: number): Days {
  return { from: day, to: day + 1 };
}

function namesIn(options: Intl.DateTimeFormatOptions, count: number, at: (i: number) => number): Map<string, number> {
  const names = new Map<string, number>();
  for (const locale of LOCALES) {
    // With a day beside it a month has the form that a sentence has: мая, not май.
    const formats = [options, ...(options.month === undefined ? [] : [{ ...options, day: 'numeric' } as const])];
    for (const format of formats.map((one) => new Intl.DateTimeFormat(locale, { ...one, timeZone: 'UTC' }))) {
      for (let i = 0; i < count; i += 1) {
        const part = format.formatToParts(at(i)).find(({ type }) => type === 'month' || type === 'weekday');
        if (part !== undefined) names.set(folded(part.value.toLowerCase()), i);
      }
    }
  }
  return names;
}

/** From lists of words to what each means; a key that is a number is one. */
function words<T extends number | string>(lists: Readonly<Record<string, string>>): Map<string, T> {
  return new Map(
    Object.entries(lists).flatMap(([value, list]) =>
      list.split(' ').map((word) => [word, (/^-?\d+$/.test(value) ? Number(value) : value) as T] as const),
    ),
  );
}
