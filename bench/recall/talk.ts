/**
 * Generated talk whose answers are known: people tell facts of their lives over months, some facts change, most of what is said is chatter
 * about the same things. Questions ask in other words than the answers say: an inflection, a paraphrase, sometimes a synonym and nothing but
 * the context in common. The same seed gives the same talk.
 */
export interface Said {
  readonly conversation: number;
  readonly session: number;
  readonly ts: number;
  readonly text: string;
}

export interface Question {
  readonly kind: 'single' | 'change' | 'when' | 'context' | 'speaker';
  readonly language: 'en' | 'de' | 'es';
  readonly text: string;
  /** Numbers of the messages that answer it: any of them. */
  readonly answers: readonly number[];
  /** The asker's clock. */
  readonly now: number;
}

/** Asks for two things at once, which were said far from each other. */
export interface DoubleQuestion extends Pick<Question, 'language' | 'text' | 'now'> {
  /** Of each thing, the messages that say it. */
  readonly answers: readonly (readonly number[])[];
}

export interface Talk {
  readonly said: readonly Said[];
  readonly questions: readonly Question[];
  readonly doubles: readonly DoubleQuestion[];
}

type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What can be told of a thing, and how it is asked for later: never in the same words. `{x}` is what only this fact has. */
interface Pattern {
  readonly tell: readonly string[];
  readonly ask: readonly string[];
  /** The fact stands in the answer to a question that was asked in the talk; the message itself does not name the thing. */
  readonly reply?: readonly [question: string, answer: string];
}

interface Words {
  readonly patterns: Readonly<Record<string, Pattern>>;
  readonly values: Readonly<Record<string, readonly string[]>>;
  /** What most of the talk is: `{s}` is one of the subjects. */
  readonly chatter: readonly string[];
  readonly subjects: readonly string[];
  /** Chatter with the words of the facts in it. */
  readonly distractors: readonly string[];
  readonly fillers: readonly string[];
  readonly when: Readonly<Record<string, readonly [tell: string, ask: string]>>;
}

const NAMES = ['Anna', 'Ben', 'Carla', 'Dmitri', 'Elena', 'Farid', 'Grace', 'Hugo', 'Irina', 'Jonas', 'Keiko', 'Liam'];
const PLACES = [
  'Lisbon',
  'Tromsø',
  'Kyoto',
  'Valparaíso',
  'Gdańsk',
  'Marrakesh',
  'Dunedin',
  'Tbilisi',
  'Hanoi',
  'Bergen',
  'Cusco',
  'Ghent',
];
const THINGS = [
  'accordion',
  'kayak',
  'telescope',
  'sewing machine',
  'greenhouse',
  'motorbike',
  'beehive',
  'pottery wheel',
  'caravan',
  'harp',
];

const EN: Words = {
  values: {
    place: PLACES,
    thing: THINGS,
    food: ['pistachios', 'shellfish', 'celery', 'gluten', 'strawberries', 'mustard', 'sesame', 'soy'],
    job: ['cartographer', 'beekeeper', 'anaesthetist', 'locksmith', 'interpreter', 'geologist', 'piano tuner', 'glazier'],
    animal: ['ferret', 'tortoise', 'parrot', 'hedgehog', 'greyhound', 'gecko', 'donkey', 'canary'],
    number: ['4,200', '17', '980', '63', '2,750', '310', '88', '1,140'],
  },
  patterns: {
    moved: {
      tell: [
        'We finally moved to {place} after my contract there was signed.',
        'So it is decided, I am moving over to {place} with the whole family.',
      ],
      ask: ['Which city did {who} move to?', 'Where has {who} been moving with the family?'],
    },
    allergy: {
      tell: [
        'The test came back: I am allergic to {food}, so no more of that for me.',
        'Turns out {food} gives me a rash, the doctor called it an allergy.',
      ],
      ask: ['What is {who} allergic to?', 'Which food triggers an allergy for {who}?'],
    },
    job: {
      tell: ['I got hired as a {job}, I am starting on Monday.', 'They offered me work as a {job} and I accepted.'],
      ask: ['What job did {who} accept?', 'As what was {who} hired, which work did they start?'],
    },
    bought: {
      tell: ['I bought a used {thing} at the flea market.', 'Look at this, I have bought myself a {thing}, and it works.'],
      ask: ['What did {who} buy second hand at the market, and does it work?', 'Which things has {who} been buying at flea markets?'],
    },
    pet: {
      tell: ['The shelter called, we adopted a {animal}.', 'Our new {animal} arrived, we adopted it last night.'],
      ask: ['Which animal did {who} adopt from the shelter?', 'What kind of pet was adopted by {who}?'],
    },
    price: {
      tell: ['The roof repair will cost {number} in the end.', 'They repaired our roof and charged {number}.'],
      ask: ['How much were the repairs of the roof for {who}?', 'What did {who} pay for repairing the roof?'],
    },
    named: {
      tell: [],
      reply: ['And what are you going to call the sailing boat?', '{place}, I think. It sounds right to me.'],
      ask: ['What is the name that {who} gave to the boat?', 'How is the sailboat of {who} called?'],
    },
  },
  when: {
    surgery: ['My knee surgery went well, I was back home by the afternoon.', 'When was the knee operated, the surgery of {who}?'],
    marathon: ['I ran my first marathon and I cannot feel my legs.', 'When did {who} run the marathon?'],
    piano: ['The piano recital of my daughter was lovely.', 'On which date was the recital of the daughter of {who}?'],
    flood: ['Our cellar was flooded, the pump broke.', 'When did the cellar of {who} flood?'],
  },
  chatter: [
    'How was your weekend?',
    'That sounds great!',
    'Haha, same here.',
    'Thanks, that helps a lot.',
    'I have been so busy with the {s} lately.',
    'Did you hear about the {s}?',
    'I am still waiting for the {s}.',
    'The {s} was a disaster, honestly.',
    'We spent the whole evening on the {s}.',
    'What do you think of the {s}?',
    'My sister keeps asking about the {s}.',
    'I forgot the {s} at home again.',
    'Next time we do the {s} together.',
    'They say the {s} gets better every year.',
    'I cannot stop thinking about the {s}.',
    'Someone should fix the {s}.',
    'The {s} made me laugh.',
    'Remember the {s} from last summer?',
    'I would rather skip the {s}.',
    'You were right about the {s}.',
  ],
  subjects:
    'concert,train,garden party,tax form,neighbour,choir,holiday plan,printer,recipe,election,museum,podcast,traffic,kitchen,birthday,presentation,haircut,bicycle,playlist,exam,meeting,novel,lecture,window,festival,carpet,coffee machine,swimming pool,library,snow,bakery,wedding,parcel,password,lamp,match,phone,newspaper,ferry,mountain hut,painting,theatre play,dishwasher,internship,yoga class,bus strike,invoice,balcony,puzzle,soup'.split(
      ',',
    ),
  distractors: [
    'I am thinking about a new city, but not yet.',
    'My job is exhausting at the moment.',
    'The market was crowded.',
    'Our neighbours repaired their fence.',
    'The food there was fine.',
    'A friend of mine adopted a habit of running.',
    'Do you still sail?',
    'The doctor says I should sleep more.',
    'We talked about the roof again, no decision.',
    'I read a good book about animals.',
    'I bought groceries and cooked.',
    'We paid the bills.',
    'My family says hello.',
    'I work too much.',
    'The boat show was boring.',
    'I bought new shoes and a coat.',
  ],
  fillers: ['Anyway', 'To be honest', 'By the way', 'You know', 'Well', 'Listen', 'Good news'],
};

const DE: Words = {
  values: {
    ...EN.values,
    thing: ['Akkordeon', 'Teleskop', 'Gewächshaus', 'Motorrad', 'Bienenhaus', 'Wohnwagen', 'Kajak'],
    food: ['Pistazien', 'Sellerie', 'Gluten', 'Erdbeeren', 'Senf', 'Sesam'],
    job: ['Kartografin', 'Imkerin', 'Dolmetscherin', 'Geologin', 'Schlosserin', 'Glaserin'],
    animal: ['Frettchen', 'Schildkröte', 'Papagei', 'Igel', 'Gecko', 'Esel'],
  },
  patterns: {
    moved: {
      tell: [
        'Wir sind endlich nach {place} umgezogen, die Wohnung ist schön.',
        'Es steht fest, ich ziehe mit der Familie nach {place} um.',
      ],
      ask: ['In welche Stadt ist {who} mit der Familie umgezogen?', 'Wohin ging der Umzug, in welche Wohnung zieht {who} um?'],
    },
    allergy: {
      tell: ['Der Test ist da: Ich bin allergisch gegen {food}.', 'Von {food} bekomme ich Ausschlag, laut Arzt eine Allergie.'],
      ask: ['Wogegen ist {who} allergisch?', 'Welche Allergie wurde bei {who} vom Arzt festgestellt?'],
    },
    bought: {
      tell: ['Ich habe auf dem Flohmarkt ein gebrauchtes {thing} gekauft.'],
      ask: ['Was kaufte {who} gebraucht auf dem Flohmarkt?'],
    },
    pet: {
      tell: ['Das Tierheim rief an, wir haben jetzt ein Tier adoptiert: {animal}.'],
      ask: ['Welches Tier adoptierte {who} aus dem Tierheim?'],
    },
    price: { tell: ['Die Reparatur vom Dach kostet am Ende {number}.'], ask: ['Wie viel kosteten bei {who} die Reparaturen am Dach?'] },
  },
  when: {
    surgery: ['Meine Knieoperation ist gut verlaufen, nachmittags war ich zu Hause.', 'Wann war die Knieoperation von {who}?'],
    marathon: ['Ich bin meinen ersten Marathon gelaufen.', 'Wann lief {who} den Marathon?'],
  },
  chatter: [
    'Wie war dein Wochenende?',
    'Das klingt toll!',
    'Danke, das hilft.',
    'Ich habe gerade so viel mit {s} zu tun.',
    'Hast du von {s} gehört?',
    'Mit {s} war es eine Katastrophe.',
    'Was hältst du von {s}?',
    'Meine Schwester redet nur noch von {s}.',
    'Weißt du noch, die Sache mit {s}?',
    'Beim nächsten Mal kümmern wir uns um {s}.',
  ],
  subjects:
    'Musik,Steuern,Urlaub,Rezepten,Wahlen,Podcasts,Verkehr,Küchen,Geburtstagen,Prüfungen,Romanen,Schnee,Hochzeiten,Paketen,Theater,Lampen,Zeitungen,Fähren,Bergen,Gemälden,Rechnungen,Balkonen,Suppen,Fahrrädern'.split(
      ',',
    ),
  distractors: [
    'Das Wetter ist wieder furchtbar.',
    'Der Markt war voll.',
    'Wir haben lange über das Dach geredet.',
    'Der Arzt sagt, ich soll mehr schlafen.',
    'Die Stadt ist mir zu laut.',
    'Die Familie lässt grüßen.',
    'Die Wohnung nebenan ist frei.',
  ],
  fillers: ['Übrigens', 'Ehrlich gesagt', 'Weißt du', 'Also', 'Gute Nachrichten'],
};

const ES: Words = {
  values: {
    ...EN.values,
    thing: ['acordeón', 'telescopio', 'invernadero', 'kayak', 'arpa'],
    food: ['pistachos', 'mariscos', 'apio', 'fresas', 'mostaza', 'sésamo'],
    job: ['cartógrafa', 'apicultora', 'intérprete', 'geóloga', 'cerrajera'],
    animal: ['hurón', 'tortuga', 'loro', 'erizo', 'burro'],
  },
  patterns: {
    moved: {
      tell: ['Por fin nos mudamos a {place}, el piso es precioso.', 'Está decidido, me mudo a {place} con toda la familia.'],
      ask: ['¿A qué ciudad se mudó {who} con la familia?', '¿Adónde fue la mudanza, a qué piso se mudaba {who}?'],
    },
    allergy: { tell: ['Llegó la prueba: soy alérgica a {food}.'], ask: ['¿A qué alimento es alérgico {who} según las pruebas?'] },
    bought: { tell: ['Compré un {thing} usado en el mercadillo.'], ask: ['¿Qué ha comprado {who} de segunda mano en el mercadillo?'] },
    pet: { tell: ['Llamaron del refugio, hemos adoptado un animal: {animal}.'], ask: ['¿Qué animal adoptó {who} en el refugio?'] },
  },
  when: { marathon: ['Corrí mi primera maratón y no siento las piernas.', '¿Cuándo corrió {who} la maratón?'] },
  chatter: [
    '¿Qué tal el fin de semana?',
    '¡Suena genial!',
    'Gracias, eso ayuda.',
    'Estoy muy ocupada con {s}.',
    '¿Has oído algo de {s}?',
    'Lo de {s} fue un desastre.',
    '¿Qué piensas de {s}?',
    'Mi hermana solo habla de {s}.',
    '¿Te acuerdas de {s}?',
    'Otra vez se me olvidó {s}.',
  ],
  subjects:
    'la música,los impuestos,las vacaciones,la receta,las elecciones,el tráfico,la cocina,el cumpleaños,los exámenes,la novela,la nieve,la boda,el paquete,el teatro,la lámpara,el periódico,la montaña,la factura,el balcón,la sopa'.split(
      ',',
    ),
  distractors: [
    'El mercado estaba lleno.',
    'La ciudad es muy ruidosa.',
    'El médico dice que duerma más.',
    'La familia te manda saludos.',
    'Vimos un piso, pero nada.',
  ],
  fillers: ['Por cierto', 'La verdad', 'Mira', 'Bueno', 'Buenas noticias'],
};

const LANGUAGES = { en: EN, de: DE, es: ES };
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const BEGIN = Date.UTC(2023, 0, 9, 8) / 1000;
const DAY = 86_400;
const SESSION_TURNS = 24;
/** Sessions of a conversation. */
const SESSIONS = 25;

/** About `turns` messages; `questions` of them at most. */
export function talkOf(turns: number, questions: number, seed: number): Talk {
  const random = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const said: Said[] = [];
  const asked: Question[] = [];
  const doubles: DoubleQuestion[] = [];
  for (let conversation = 0; said.length < turns; conversation += 1) {
    const language = conversation % 5 === 3 ? 'de' : conversation % 5 === 4 ? 'es' : 'en';
    const words = LANGUAGES[language];
    // No two people of a scope have one name: a question must have one answer.
    const named = [0, 1].map((i) => {
      const number = 2 * conversation + i;
      const round = Math.floor(number / NAMES.length);
      return `${NAMES[number % NAMES.length]}${round === 0 ? '' : `-${LETTERS[round % 26]}${round.toString(36)}`}`;
    });
    const facts = new Map<string, number[]>();
    const whenDone = new Set<string>();
    for (let session = 0; session < SESSIONS && said.length < turns; session += 1) {
      const begin = BEGIN + session * 9 * DAY + Math.floor(random() * 4 * DAY) + conversation * 1_000;
      const say = (who: number, text: string): number =>
        said.push({ conversation, session, ts: begin + 60 * (said.length % SESSION_TURNS), text: `${named[who]}: ${text}` }) - 1;
      for (let turn = 0; turn < SESSION_TURNS;) {
        const who = turn % 2;
        const roll = random();
        if (roll > 0.12) {
          say(who, chatter(words, random, pick));
          turn += 1;
          continue;
        }
        const speaker = named[who] ?? '';
        if (roll < 0.02) {
          const name = pick(Object.keys(words.when));
          if (whenDone.has(`${speaker} ${name}`)) continue;
          whenDone.add(`${speaker} ${name}`);
          const [tell, ask] = words.when[name] ?? ['', ''];
          const at = say(who, tell);
          asked.push({ kind: 'when', language, text: ask.replace('{who}', speaker), answers: [at], now: begin + 200 * DAY });
          turn += 1;
          continue;
        }
        const name = pick(Object.keys(words.patterns));
        const pattern = words.patterns[name];
        if (!pattern) continue;
        const key = `${speaker} ${name}`;
        const known = facts.get(key) ?? [];
        // A fact changes once at most; what is asked for then is either state of it.
        if (known.length >= 2) continue;
        const fill = (text: string): string =>
          text.replace(/\{(\w+)\}/g, (whole, slot: string) => (slot === 'who' ? speaker : pick(words.values[slot] ?? [whole])));
        let at: number;
        if (pattern.reply) {
          say(1 - who, pattern.reply[0]);
          at = say(who, fill(pattern.reply[1]));
          turn += 2;
        } else {
          at = say(who, `${pick(words.fillers)}, ${lowered(fill(pick(pattern.tell)), language)}`);
          turn += 1;
        }
        facts.set(key, [...known, at]);
      }
    }
    for (const [key, answers] of facts) {
      const [speaker = '', name = ''] = key.split(' ');
      const pattern = words.patterns[name];
      if (!pattern) continue;
      const text = pick(pattern.ask).replaceAll('{who}', speaker);
      const kind = pattern.reply ? 'context' : answers.length > 1 ? 'change' : 'single';
      const last = said[answers.at(-1) ?? 0]?.ts ?? BEGIN;
      asked.push({ kind, language, text, answers, now: last + 100 * DAY });
    }
    for (const speaker of named) {
      // Without chance: the questions above stay the same.
      const own = [...facts].filter(([key]) => key.startsWith(`${speaker} `));
      for (const [[oneKey, one], [otherKey, other]] of pairsOf(own)) {
        const [ask, and] = [oneKey, otherKey].map((key) => words.patterns[key.slice(speaker.length + 1)]?.ask[0] ?? '');
        const text = `${ask} ${and}`.replaceAll('{who}', speaker);
        doubles.push({ language, text, answers: [one, other], now: BEGIN + 600 * DAY });
      }
    }
  }
  return { said, questions: someOf(asked, questions), doubles: someOf(doubles, questions) };
}

function someOf<T>(all: readonly T[], most: number): T[] {
  const step = Math.max(1, Math.floor(all.length / most));
  return all.filter((_, i) => i % step === 0).slice(0, most);
}

/** The first with the second, the third with the fourth, and so on. */
function pairsOf<T>(all: readonly T[]): [T, T][] {
  return all.flatMap((one, i) => (i % 2 === 1 && all[i - 1] !== undefined ? [[all[i - 1] as T, one] as [T, T]] : []));
}

function chatter({ chatter: lines, subjects, distractors }: Words, random: Random, pick: <T>(list: readonly T[]) => T): string {
  const one = (): string => (random() < 0.1 ? pick(distractors) : pick(lines).replace('{s}', () => pick(subjects)));
  return random() < 0.5 ? one() : `${one()} ${one()}`;
}

/** German nouns keep their capitals: only the first letter of a sentence changes, where it is no noun's. */
function lowered(text: string, language: string): string {
  return language === 'de' || /^I\b/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
}
