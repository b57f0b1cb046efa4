/**
 * Which lines that a model concluded wait for a person, when a tool that is not trusted, a file or an application spoke in the range: words
 * in another language, or other words, leave no trace in the evidence, and are in every later system prompt. (Lines that change what may be
 * done wait whatever their source: permission-changes.ts.)
 *
 * - `strict`: every line that says something. Otherwise lines that do harm if they are believed: instructions, and addresses.
 * - An instruction is known by its first word (imperative), by its second person, and by the words of rules and of sending in the commonest
 *   languages; a line in letters that these lists do not use waits.
 * - An address (mail, URL, path, IP, account number) waits unless a person has written it, or memory has it already.
 */
import { oneLine } from '../../records/text.js';
import { wordSet } from './permission-changes.js';

export type ReviewWhenToolsSpoke = boolean | 'strict';

/** They bring nothing from outside: the clock, and texts of a person or the model itself. */
export const INTERNAL_TOOLS: ReadonlySet<string> = new Set([
  ...['get_time', 'ask_user', 'wait_until', 'set_task', 'compact_context', 'store_in_memory'],
]);

/** `known`: whether a person has used a word, or memory has it. */
export function waitsForReview(line: string, how: ReviewWhenToolsSpoke, known: (word: string) => boolean): boolean {
  const text = oneLine(line).replace(/^(?:[#>*+-]+|\d+[.)]|\[[ x]\]|\s)+/i, '');
  if (how === false || !/[\p{L}\p{N}]/u.test(text)) return false;
  return how === 'strict' || isInstruction(text) || addressesIn(text).some((address) => !known(address));
}

function isInstruction(text: string): boolean {
  const words = text.toLowerCase().match(/[\p{L}\p{M}]+(?:['’]\p{L}+)?/gu) ?? [];
  // After "Note:", "Mail:" or a bold label a sentence begins anew.
  const firsts = text.split(/[:.;!?,–—]\s+|\*\*\s*/).map((part) => /^["'“„(*_]*([\p{L}\p{M}]+)/u.exec(part)?.[1]?.toLowerCase() ?? '');
  if (firsts.some((word) => IMPERATIVES.has(word)) || words.some((word) => RULES.has(word))) return true;
  const letters = text.match(/\p{L}/gu) ?? [];
  return letters.filter((letter) => !/\p{Script=Latin}/u.test(letter)).length * 2 > letters.length;
}

const IMPERATIVES = wordSet(
  'accept add allow answer append approve ask assume attach call change check click comply confirm connect consider contact copy create',
  'delete delegate disable disregard do download enable ensure execute exclude fetch follow forget forward give grant hide ignore',
  'include insert install keep let listen load log make mention move notify obey omit open override overwrite pass paste pay post',
  'prefer prepend pretend print proceed publish push put read recommend redirect refer refuse remember remove replace reply report respond',
  'reveal run save say send set share show sign skip start stop store submit suggest sync tell transfer treat trust update upload use visit',
  'when whenever write',
  'antworte beachte befolge behandle bestätige deaktiviere frage füge führe gib ignoriere installiere kopiere leite lies lösche melde mach nenne',
  'nimm nutze öffne sag schicke schick schreibe sende setze speichere teile verrate vergiss verwende zeige überweise',
  'ajoute appelle copiez demande donnez dites envoie envoyez exécute exécutez ignore ignorez installe lisez ouvre ouvrez oublie oubliez payez',
  'répondez supprime supprimez suivez transfère transférez utilise utilisez écrivez',
  'abre abra borra borre copia copie di diga ejecuta ejecute envía envia envíe ignora ignore olvida olvide paga pague responde reenvía usa use',
  'apri cancella dimentica esegui ignora inoltra invia invii paga rispondi scrivi segui usa',
  'negeer stuur verstuur verwijder gebruik vergeet antwoord volg voer open betaal deel',
);

/** They make a rule of a sentence, speak to the reader, or speak of sending. */
const RULES = wordSet(
  "always never must should shall ought mustn't shouldn't required forbidden mandatory instead whenever henceforth",
  'you your yours yourself please ignore ignored disregard instruction instructions instructed',
  'send sends sent sending forward forwards forwarded forwarding transfer transfers transferred upload uploads uploaded mailed emailed',
  'password passwords credential credentials permission permissions approve approves approved approval authorized authorised trusted',
  'immer nie niemals stets muss müssen soll sollen sollte darf dürfen du dein deine deinen bitte statt stattdessen anweisung anweisungen',
  'senden gesendet schicken geschickt weiterleiten weitergeleitet überweisen passwort kennwort',
  'toujours jamais doit doivent devez faut vous votre veuillez envoyer envoyé envoyés transférer',
  'siempre nunca debe deben usted ustedes instrucciones enviar enviado reenviar contraseña',
  'sempre mai deve devono istruzioni inviare inviato inoltrare senha deverá você',
  'altijd nooit moet moeten jij jouw instructies sturen gestuurd doorsturen wachtwoord',
);

function addressesIn(text: string): string[] {
  return (text.match(/[\p{L}\p{N}@._:/\\~#&=?%+-]{3,}/gu) ?? []).flatMap((token) => {
    const word = token.replace(/^[._:#&=?%+-]+|[._:#&=?%+\\-]+$/g, '');
    return ADDRESSES.some((pattern) => pattern.test(word)) ? [word] : [];
  });
}

const ADDRESSES: readonly RegExp[] = [
  /@\p{L}/u,
  /^[a-z][a-z+.-]*:\/\//i,
  // A host, not `node.js` or `e.g`: a name that ends as hosts do, or has a path.
  /^(?:[\p{L}\p{N}-]+\.)+(?:com|net|org|io|dev|app|ai|co|info|biz|xyz|example|test|local|onion|[a-z]{2})(?:[:/]|$)/iu,
  /^(?:~|\.{1,2})?\/[^/]|^[a-z]:\\|^\\\\/i,
  /^\d{1,3}(?:\.\d{1,3}){3}(?:[:/]|$)|^[\da-f]*:[\da-f]*:[\da-f:]+$/i,
  // IBAN, cards, telephone numbers, hashes and wallets.
  /^[a-z]{2}\d{2}[a-z\d]{8,}$/i,
  /^\+?\d[\d-]{6,}$/,
  /^(?=.*\d)[a-z\d]{20,}$/i,
];
